//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// injection is a system call that a thread makes for the monitor (see resident.StubCode). If
// the monitor dies, the thread makes its call and continues where it was.
type injection struct {
	begin  uint64 // of the stub
	at     uint64 // rip after the stub's syscall instruction, or after the end of a sweep
	sp     uint64
	sweep  bool // it makes many calls and stops only after all of them
	stops  int  // entry and exit
	result int64
	done   bool
	failed bool

	// The owner does not wait for the call any more. The thread makes it later, perhaps after
	// other calls, and then continues.
	abandoned bool
	outer     *injection // an abandoned call that the thread makes after this one
}

// injector makes threads of the process execute system calls for the monitor. thread.injection is
// the state of a thread's call. The injector belongs to the owner's goroutine.
type injector struct{ o *owner }

// callPatience bounds the time of an injected call, without the time for which the thread
// waits for a processor. Signal handlers of the program, which run first, may delay it.
const callPatience = 2 * time.Second

// callTurns is the factor by which the owner extends callPatience while other threads use the
// thread's processor.
const callTurns = 15

// inject makes a system call by some thread of the frozen process.
func (j *injector) inject(c resident.Call) (int64, error) {
	var block [resident.BlockSize]byte
	return j.injectOn(&block, func(uint64) resident.Call { return c })
}

// injectOn is inject for a call that uses a block of memory.
func (j *injector) injectOn(block *[resident.BlockSize]byte, c func(block uint64) resident.Call) (int64, error) {
	t, err := j.volunteer()
	if err != nil {
		return 0, err
	}
	return j.call(t, j.o.space.memory, c, block)
}

// volunteer returns a stopped thread that can make system calls for the monitor, preferably
// one that is in no system call of its own.
func (j *injector) volunteer() (*thread, error) {
	var second *thread
	barred := false
	for _, t := range j.o.tracer.threads {
		if t.kind > unobserved || !t.stopped() || t.inEvent() || ptrace.WillTrap(t.tid) {
			continue
		}
		var regs ptrace.Regs
		if ptrace.GetRegs(t.tid, &regs) != nil || !j.hasStack(&regs) {
			continue
		}
		switch {
		case !t.mayCall():
			barred = true
		case !resident.InSyscall(&regs):
			return t, nil
		default:
			second = t
		}
	}
	if second == nil && proc.Alive(j.o.proc) != nil {
		return nil, ended(j.o.proc.PID)
	}
	if second == nil && barred {
		return nil, errStrict(j.o.proc.PID)
	}
	if second == nil && j.o.ending.last != nil {
		return nil, errAtEnd(j.o.ending.last)
	}
	if second == nil {
		return nil, omis.Errorf(omis.OSError, "process %d has no thread that can be stopped", j.o.proc.PID)
	}
	return second, nil
}

// hasStack reports whether a thread's stack has room for a frame.
func (j *injector) hasStack(regs *ptrace.Regs) bool {
	detour, frame := resident.Detour(resident.Resumed(*regs), 0, resident.Call{})
	_, err := j.o.space.memory.ReadAt(make([]byte, len(frame)), int64(detour.Rsp))
	return err == nil
}

// call makes a system call by a stopped thread, which may use block, and reads back what the
// call wrote there.
func (j *injector) call(t *thread, memory *os.File, c func(block uint64) resident.Call, block *[resident.BlockSize]byte) (int64, error) {
	stub, cleanUp, err := j.stub()
	if err != nil {
		return 0, err
	}
	in := &injection{begin: stub, at: stub + resident.StubReturn}
	err = j.through(t, memory, in, c, block)
	if in.done {
		cleanUp()
	} // otherwise the stub stays, because the thread may still come to it
	return in.result, err
}

// sweep changes, by a stopped thread, its process's actions for some signals, so that SIGTRAP is
// in their masks or is not. It returns the signals that it changed.
func (j *injector) sweep(t *thread, memory *os.File, signals uint64, block bool) (changed uint64, err error) {
	j.o.masks.unblock(t) // the sweep ends with a breakpoint
	c := resident.SweepCall(j.numberOf(unix.SYS_RT_SIGACTION), signals, block)
	in := &injection{begin: j.o.space.home.Sweep(), at: j.o.space.home.SweepEnd(), sweep: true}
	left := c.Block
	err = j.through(t, memory, in, func(uint64) resident.Call { return c }, &left)
	return resident.Swept(left[:]), err
}

// numberOf returns the number under which a thread makes a system call for the monitor.
func (j *injector) numberOf(call uint64) uint64 {
	if j.o.node.marks {
		return calls.Marked(call)
	}
	return call
}

// through sends a stopped thread through a stub, and moves it back afterwards.
func (j *injector) through(t *thread, memory *os.File, in *injection, c func(block uint64) resident.Call, block *[resident.BlockSize]byte) error {
	t.clearFlag()
	t.lift()
	defer t.lower()
	var regs ptrace.Regs
	if err := ptrace.GetRegs(t.tid, &regs); err != nil {
		return j.callFailed(t)
	}
	resumed := resident.Resumed(regs)
	if t.stop == entryStop {
		if t.call.known {
			t.interrupted.push(interruptedCall{t.call, regs.Rsp, regs.Rip})
			t.call = systemCall{}
		}
		resumed = resident.Reissued(regs)
	} else if !t.followed {
		t.followed = true
		t.cutShort(&regs)
	}
	blockAt := resident.BlockAt(&resumed)
	request := c(blockAt)
	request.Block, request.Number = *block, j.numberOf(request.Number)
	detour, frame := resident.Detour(resumed, in.begin, request)
	if _, err := memory.WriteAt(frame, int64(detour.Rsp)); err != nil {
		return j.o.space.memoryError(detour.Rsp, err)
	}
	t.regroup = t.regroup || t.stop == groupStop
	if err := j.detour(t, detour, in); err != nil {
		return err
	}
	over := func() bool { return in.done || in.failed || j.o.tracer.threads[t.tid] != t }
	most := j.o.node.callPatience
	for end := time.Now().Add(callTurns * most); !j.o.tracer.pump(most, over) && t.isReady() && time.Now().Before(end); {
	}
	if !in.done {
		in.abandoned = true
		return j.callFailed(t)
	}
	t.injection = in.outer
	_, readErr := memory.ReadAt(block[:], int64(blockAt))
	// The thread does not need the way back through the frame.
	if err := ptrace.SetRegs(t.tid, &resumed); err != nil {
		in.done = false // the thread is being killed
		return j.callFailed(t)
	}
	t.stop = callStop
	ptrace.Reap(t.tid)
	if readErr != nil {
		return j.o.space.memoryError(blockAt, readErr)
	}
	return nil
}

// detour makes the thread continue in the stub.
func (j *injector) detour(t *thread, regs ptrace.Regs, in *injection) error {
	in.sp = regs.Rsp
	if err := ptrace.SetRegs(t.tid, &regs); err != nil {
		return j.callFailed(t)
	}
	t.stop, in.outer, t.injection = running, t.injection, in
	if err := in.resume(t, 0); err != nil {
		t.injection = in.outer
		return j.callFailed(t)
	}
	return nil
}

// resume continues the thread up to the next stop that matters.
func (in *injection) resume(t *thread, sig int) error {
	if in.sweep {
		return ptrace.Cont(t.tid, sig)
	}
	return ptrace.Syscall(t.tid, sig)
}

func (j *injector) callFailed(t *thread) error {
	if j.o.ended || j.o.tracer.threads[t.tid] == nil {
		return omis.Errorf(omis.UnknownObject, "process %d has ended", j.o.proc.PID)
	}
	return omis.Errorf(omis.OSError, "thread %d of process %d did not do what breakpoints need", t.tid, j.o.proc.PID)
}

// advance is called at each stop of the thread until its call is made. Signal
// handlers of the program may run first, and make system calls of their own.
func (in *injection) advance(o *owner, t *thread, s ptrace.Status) {
	sig := 0
	switch {
	case s.SyscallStop():
		var regs ptrace.Regs
		if in.isAtEnd(t, &regs) {
			in.stops++
			in.result = int64(regs.Rax)
		}
		if in.stops == 2 {
			in.done = true
			t.stop = callStop
			return
		}
	case s.Event() != 0:
		t.asked = false
		if in.sweep && in.isAtEnd(t, &ptrace.Regs{}) {
			in.done = true
			t.stop = callStop
			return
		}
		if s.Event() != ptrace.EventStop {
			t.stop = eventStop
			o.family.happened(t, s.Event())
			t.stop = running
		}
	case s.Signal() == int(unix.SIGTRAP) && in.sweep && in.isAtEnd(t, &ptrace.Regs{}):
		// It stops once more, without the signal: if the monitor died now, the signal would
		// be lost.
		_ = ptrace.Interrupt(t.tid)
	case s.Signal() == int(unix.SIGTRAP) && o.events.reached(t):
		// A breakpoint in a signal handler of the program. If a list holds the thread there,
		// nobody knows when the thread will make the call, so the injection fails.
		if t.holds > 0 {
			in.failed = true
			return
		}
	default:
		sig = s.Signal()
	}
	if err := in.resume(t, sig); err != nil {
		in.failed = true
	}
}

// isAtEnd reports whether the stopped thread is where the injection ends, and reads its
// registers.
func (in *injection) isAtEnd(t *thread, regs *ptrace.Regs) bool {
	return ptrace.GetRegs(t.tid, regs) == nil && regs.Rip == in.at && regs.Rsp == in.sp
}
