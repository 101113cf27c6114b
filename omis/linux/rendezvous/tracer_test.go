//go:build linux && amd64

package rendezvous

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// tracer is a minimal Target: it stops all threads, lets the first one make system calls,
// and detaches. It must stay on its OS thread.
type tracer struct {
	*os.File // the memory
	pid      int
	tids     []int
}

func trace(pid int) (*tracer, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t := &tracer{memory, pid, nil}
	known := make(map[int]bool)
	for more := true; more; {
		more = false
		tids, err := proc.Threads(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			if known[tid] {
				continue
			}
			known[tid], more = true, true
			if err := t.stop(tid); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ECHILD) {
				return nil, fmt.Errorf("thread %d: %w", tid, err)
			}
		}
	}
	return t, nil
}

func (t *tracer) stop(tid int) error {
	// Without options, the tracer gets no events of children.
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if err := ptrace.Interrupt(tid); err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
			return err
		}
		if status.Stopped() && status>>16 == ptrace.EventStop {
			t.tids = append(t.tids, tid)
			return nil
		}
		if err := ptrace.Cont(tid, int(status.StopSignal())); err != nil {
			return err
		}
	}
}

func (t *tracer) PID() int { return t.pid }

func (t *tracer) Call(number uint64, args ...uint64) (int64, error) {
	tid := t.tids[0]
	var regs ptrace.Regs
	if err := ptrace.GetRegs(tid, &regs); err != nil {
		return 0, err
	}
	resumed := resident.Resumed(regs)
	code := make([]byte, 3)
	if _, err := t.ReadAt(code, int64(resumed.Rip)); err != nil {
		return 0, err
	}
	defer t.WriteAt(code, int64(resumed.Rip))
	if _, err := t.WriteAt([]byte{0x0f, 0x05, 0xcc}, int64(resumed.Rip)); err != nil {
		return 0, err
	}
	call := resumed
	a := [6]uint64{}
	copy(a[:], args)
	call.Rax, call.Rdi, call.Rsi, call.Rdx, call.R10, call.R8, call.R9 = number, a[0], a[1], a[2], a[3], a[4], a[5]
	if err := ptrace.SetRegs(tid, &call); err != nil {
		return 0, err
	}
	if err := t.stepOver(tid); err != nil {
		return 0, err
	}
	if err := ptrace.GetRegs(tid, &call); err != nil {
		return 0, err
	}
	return int64(call.Rax), ptrace.SetRegs(tid, &resumed)
}

// stepOver runs a thread up to the INT3.
func (t *tracer) stepOver(tid int) error {
	for {
		if err := ptrace.Cont(tid, 0); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
			return err
		}
		if status.StopSignal() == unix.SIGTRAP && status>>16 == 0 {
			return nil
		}
		if !status.Stopped() {
			return fmt.Errorf("thread %d is gone", tid)
		}
	}
}

// moveOut moves threads out of places to which jumps will be written.
func (t *tracer) moveOut(s *Site) error {
	for _, tid := range t.tids {
		var regs ptrace.Regs
		if err := ptrace.GetRegs(tid, &regs); err != nil {
			return err
		}
		if to, ok := s.Moved(regs.Rip); ok {
			if err := ptrace.SetPC(tid, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tracer) letGo() {
	for _, tid := range t.tids {
		_ = ptrace.Detach(tid, 0)
	}
	t.Close()
}

// vacancies proposes the gaps between mappings.
func vacancies(pid int) func(uint64) []uint64 {
	return func(near uint64) []uint64 {
		maps, err := proc.Maps(pid)
		if err != nil {
			return nil
		}
		var all []uint64
		end := uint64(0x10000)
		for _, m := range maps {
			if m.Start >= end+ArenaSize && m.Start != maps[0].Start {
				all = append(all, m.Start-ArenaSize)
			}
			end = m.End
		}
		return append(all, maps[0].Start-0x100000)
	}
}

func loadBias(path string, pid int, f *elf.File) (uint64, error) {
	if f.Type != elf.ET_DYN {
		return 0, nil
	}
	maps, err := proc.Maps(pid)
	if err != nil {
		return 0, err
	}
	for _, m := range maps {
		if m.Path == path {
			return m.Start, nil
		}
	}
	return 0, fmt.Errorf("%s is not mapped", path)
}

// visit stops a target, calls do and continues the target.
func visit(pid int, do func(*tracer) error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		t, err := trace(pid)
		if err == nil {
			err = do(t)
			t.letGo()
		}
		result <- err
	}()
	return <-result
}

// plant installs or adopts the site of a target and puts jumps at addresses.
func plant(path string, pid int, patience time.Duration, addrs ...uint64) (site *Site, err error) {
	err = visit(pid, func(t *tracer) error {
		config := Config{Vacancies: vacancies(pid), Patience: patience}
		maps, err := proc.Maps(pid)
		if err != nil {
			return err
		}
		site = Adopt(t, maps, config)
		for _, addr := range addrs {
			fn, err := function(path, pid, addr)
			if err != nil {
				return err
			}
			p, err := Survey(fn, addr)
			if err != nil {
				return err
			}
			if err := site.Prepare(p); err != nil {
				return err
			}
			if err := t.moveOut(site); err != nil {
				return err
			}
			if err := site.Plant(addr); err != nil {
				return err
			}
		}
		return nil
	})
	return site, err
}
