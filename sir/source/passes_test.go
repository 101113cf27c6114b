package source

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"mirador/sir"
)

// stop is an address at which a program is counted, perhaps under a condition of the flags.
type stop struct {
	addr uint64
	when sir.Condition
}

// holds reports whether the flags fulfil the condition.
func (s stop) holds(flags uint64) bool {
	if s.when == 0 {
		return true
	}
	is := func(bit uint) bool { return flags>>bit&1 != 0 }
	const carry, parity, zero, sign, overflow = 0, 2, 6, 7, 11
	less := is(sign) != is(overflow)
	number := s.when - 1
	values := [...]bool{is(overflow), is(carry), is(zero), is(carry) || is(zero), is(sign), is(parity), less, less || is(zero)}
	return values[number/2] == (number%2 == 0)
}

const breakpoint = 0xcc

// passes runs a program that is not relocated, and returns how often it passes addresses.
func passes(t *testing.T, dir string, argv []string, stops []stop) map[stop]int {
	t.Helper()
	runtime.LockOSThread() // only the thread that starts a process may trace it
	defer runtime.UnlockOSThread()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Args[0] = "program"
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer cmd.Process.Kill()
	at := map[uint64][]stop{}
	for _, s := range stops {
		at[s.addr] = append(at[s.addr], s)
	}
	if s := wait(t, pid); !s.Stopped() {
		t.Fatal("the program does not start")
	}
	code := map[uint64]byte{}
	for a := range at {
		code[a] = poke(t, pid, a, breakpoint)
	}
	counts := map[stop]int{}
	for signal := 0; ; {
		if err := syscall.PtraceCont(pid, signal); err != nil {
			t.Fatal(err)
		}
		s := wait(t, pid)
		if s.Exited() && s.ExitStatus() == 0 {
			return counts
		}
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
			t.Fatalf("%v ended with status %#x: %v", argv, s, err)
		}
		here := at[regs.Rip-1]
		if signal = int(s.StopSignal()); s.StopSignal() != syscall.SIGTRAP || here == nil {
			continue
		}
		signal = 0
		regs.Rip--
		for _, s := range here {
			if s.holds(regs.Eflags) {
				counts[s]++
			}
		}
		step(t, pid, &regs, code[regs.Rip])
	}
}

// step executes the instruction at a breakpoint.
func step(t *testing.T, pid int, regs *syscall.PtraceRegs, code byte) {
	t.Helper()
	addr := regs.Rip
	if err := syscall.PtraceSetRegs(pid, regs); err != nil {
		t.Fatal(err)
	}
	poke(t, pid, addr, code)
	if err := syscall.PtraceSingleStep(pid); err != nil {
		t.Fatal(err)
	}
	if s := wait(t, pid); !s.Stopped() || s.StopSignal() != syscall.SIGTRAP {
		t.Fatalf("the instruction at %#x ends with status %#x", addr, s)
	}
	poke(t, pid, addr, breakpoint)
}

func wait(t *testing.T, pid int) (status syscall.WaitStatus) {
	t.Helper()
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return status
		}
		if err != syscall.EINTR {
			t.Fatal(os.NewSyscallError("wait4", err))
		}
	}
}

// poke writes a byte of the program, and returns the former one.
func poke(t *testing.T, pid int, addr uint64, b byte) byte {
	t.Helper()
	old, one := []byte{0}, []byte{b}
	if _, err := syscall.PtracePeekText(pid, uintptr(addr), old); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.PtracePokeText(pid, uintptr(addr), one); err != nil {
		t.Fatal(err)
	}
	return old[0]
}
