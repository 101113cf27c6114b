//go:build linux && amd64

package library

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
)

// tracer is a minimal debugger for programs with one thread. The test's goroutine is
// locked to its OS thread.
type tracer struct {
	t       testing.TB
	pid     int
	id      omis.ProcID
	stopped bool
	under   map[uint64]byte // bytes that breakpoints displaced
}

func compile(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-g", "-fPIC", "-shared", "-Wl,--version-script=testdata/shapes.map", "-o", dir + "/libshapes.so", "testdata/shapes.c"},
		{"-g0", "-fPIC", "-shared", "-o", dir + "/libplain.so", "testdata/plain.c"},
		{"-g", "-o", dir + "/main", "testdata/main.c", "-L" + dir, "-lshapes", "-lplain", "-Wl,-rpath," + dir},
	} {
		if b, err := exec.Command("gcc", append([]string{"-O2", "-w", "-fno-builtin"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, b)
		}
	}
	return filepath.Join(dir, "main")
}

// startTracer runs a program up to its SIGUSR1.
func startTracer(t testing.TB, program string) *tracer {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &tracer{t: t, pid: cmd.Process.Pid, under: make(map[uint64]byte)}
	d.wait()
	t.Cleanup(func() {
		if d.stopped {
			unix.Kill(d.pid, unix.SIGKILL)
			d.wait()
		}
	})
	var err error
	if d.id, err = proc.Identify(d.pid); err != nil && d.id.PID == 0 {
		t.Fatal(err)
	}
	for sig := d.wait0(); sig != unix.SIGUSR1; sig = d.wait0() {
		if !d.stopped {
			t.Fatal("the program has ended early")
		}
	}
	return d
}

func (d *tracer) wait0() unix.Signal {
	d.check(unix.PtraceCont(d.pid, 0))
	return d.wait()
}

func (d *tracer) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *tracer) wait() unix.Signal {
	d.t.Helper()
	var status unix.WaitStatus
	_, err := unix.Wait4(d.pid, &status, 0, nil)
	d.check(err)
	d.stopped = status.Stopped()
	return status.StopSignal()
}

func (d *tracer) plant(addr uint64) {
	d.t.Helper()
	var b [1]byte
	if _, planted := d.under[addr]; planted {
		return
	}
	_, err := unix.PtracePeekText(d.pid, uintptr(addr), b[:])
	d.check(err)
	d.under[addr] = b[0]
	d.poke(addr, 0xcc)
}

func (d *tracer) poke(addr uint64, b byte) {
	d.t.Helper()
	_, err := unix.PtracePokeText(d.pid, uintptr(addr), []byte{b})
	d.check(err)
}

func (d *tracer) read(buf []byte, addr uint64) (int, error) { return proc.ReadMemory(d.pid, addr, buf) }

func (d *tracer) registers() *Registers {
	d.t.Helper()
	r := &Registers{FP: make([]byte, 512)}
	d.check(unix.PtraceGetRegs(d.pid, &r.PtraceRegs))
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETFPREGS, uintptr(d.pid), 0, uintptr(unsafe.Pointer(&r.FP[0])), 0, 0)
	if errno != 0 {
		d.t.Fatal(errno)
	}
	return r
}

// seen is an observed call.
type seen struct {
	f              *Function
	args           []prototype.Arg
	started, ended []omis.Value
	ret, sp        uint64
	application    bool
}

// observe runs the program to its end and records the calls of functions.
func (d *tracer) observe(functions ...*Function) (calls []*seen) {
	d.t.Helper()
	for _, f := range functions {
		d.plant(f.Addr)
	}
	var open []*seen
	for d.wait0() == unix.SIGTRAP {
		r := d.registers()
		at := r.Rip - 1
		for _, f := range functions {
			if f.Addr == at {
				c := d.began(f, r)
				calls, open = append(calls, c), append(open, c)
			}
		}
		if n := len(open); n > 0 && open[n-1].ret == at && r.Rsp == open[n-1].sp+8 {
			c := open[n-1]
			c.ended = c.f.Ended(c.args, r, d.read)
			open = open[:n-1]
		}
		d.pass(r, at)
	}
	if d.stopped {
		d.t.Fatal("the program did not exit normally")
	}
	return calls
}

func (d *tracer) began(f *Function, r *Registers) *seen {
	d.t.Helper()
	ret, err := ReturnAddress(r, d.read)
	d.check(err)
	c := &seen{f: f, ret: ret, sp: r.Rsp, application: f.ByApplication(ret)}
	c.started, c.args = f.Started(r, d.read)
	d.plant(ret)
	return c
}

// pass executes the instruction at a breakpoint.
func (d *tracer) pass(r *Registers, at uint64) {
	d.t.Helper()
	r.Rip = at
	d.check(unix.PtraceSetRegs(d.pid, &r.PtraceRegs))
	d.poke(at, d.under[at])
	d.check(unix.PtraceSingleStep(d.pid))
	if sig := d.wait(); sig != unix.SIGTRAP {
		d.t.Fatalf("a single step ends with %v", sig)
	}
	d.poke(at, 0xcc)
}

// show formats values for comparison.
func show(vs []omis.Value) string {
	var s string
	for i, v := range vs {
		if i > 0 {
			s += " "
		}
		switch v.Kind {
		case omis.KindInt:
			if v.Neg {
				s += "-"
			}
			s += fmt.Sprint(v.N)
		case omis.KindFloat:
			s += fmt.Sprintf("%gf", v.Float)
		case omis.KindList:
			s += "[" + show(v.List) + "]"
		case omis.KindBinary:
			s += fmt.Sprintf("#%x", v.Str)
		default:
			s += fmt.Sprintf("%q", v.Str)
		}
	}
	return s
}
