//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/calls"
	"mirador/omis/linux/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// injection is a system call that a thread makes for us (see resident.StubCode).
// Whatever happens to us, the thread makes its call and goes on where it was.
type injection struct {
	at     uint64 // rip behind the stub's syscall instruction
	sp     uint64
	stops  int // entry and exit
	result int64
	done   bool
	failed bool
}

// callPatience is how long an injected call may take, beside what the thread waits for a
// processor. It may be kept by signal handlers of the program, which run first.
const callPatience = 2 * time.Second

// inject has some thread of the frozen process make a system call.
func (o *owner) inject(c resident.Call) (int64, error) {
	var block [resident.BlockSize]byte
	return o.injectOn(&block, func(uint64) resident.Call { return c })
}

// injectOn is inject for a call that uses a block of memory.
func (o *owner) injectOn(block *[resident.BlockSize]byte, c func(block uint64) resident.Call) (int64, error) {
	t, err := o.volunteer()
	if err != nil {
		return 0, err
	}
	return o.call(t, o.space.memory, c, block)
}

// volunteer picks a stopped thread that can make system calls for us, one
// outside a system call of its own if there is one.
func (o *owner) volunteer() (*thread, error) {
	var second *thread
	barred := false
	for _, t := range o.threads {
		if t.kind > stranger || !t.stopped() || t.stop == eventStop || o.pendingTrap(t) {
			continue
		}
		var regs ptrace.Regs
		if ptrace.GetRegs(t.tid, &regs) != nil || !o.hasStack(&regs) {
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
	if second == nil && proc.Alive(o.proc) != nil {
		return nil, ended(o.proc.PID)
	}
	if second == nil && barred {
		return nil, errStrict(o.proc.PID)
	}
	if second == nil {
		return nil, omis.Errorf(omis.OSError, "process %d has no thread that can be stopped", o.proc.PID)
	}
	return second, nil
}

// hasStack tells whether there is room for a frame on a thread's stack.
func (o *owner) hasStack(regs *ptrace.Regs) bool {
	detour, frame := resident.Detour(resident.Resumed(*regs), 0, resident.Call{})
	_, err := o.space.memory.ReadAt(make([]byte, len(frame)), int64(detour.Rsp))
	return err == nil
}

// call has a stopped thread make a system call, which may use block; what the
// call left there is read back.
func (o *owner) call(t *thread, memory *os.File, c func(block uint64) resident.Call, block *[resident.BlockSize]byte) (int64, error) {
	stub, cleanUp, err := o.stub()
	if err != nil {
		return 0, err
	}
	t.clearFlag()
	t.lift()
	defer t.lower()
	var regs ptrace.Regs
	if err := ptrace.GetRegs(t.tid, &regs); err != nil {
		return 0, o.callFailed(t)
	}
	resumed := resident.Resumed(regs)
	if t.stop == entryStop {
		t.interrupted.push(interruptedCall{t.call, regs.Rsp, regs.Rip})
		resumed = resident.Reissued(regs)
	}
	blockAt := resident.BlockAt(&resumed)
	request := c(blockAt)
	request.Block = *block
	if o.node.marks {
		request.Number = calls.Marked(request.Number)
	}
	detour, frame := resident.Detour(resumed, stub, request)
	if _, err := memory.WriteAt(frame, int64(detour.Rsp)); err != nil {
		return 0, o.memoryError(detour.Rsp, err)
	}
	t.regroup = t.regroup || t.stop == groupStop
	if err := o.detour(t, detour); err != nil {
		return 0, err
	}
	in := t.injection
	over := func() bool { return in.done || in.failed || o.threads[t.tid] != t }
	for end := time.Now().Add(turn); !o.pump(callPatience, over) && t.isReady() && time.Now().Before(end); {
	}
	t.injection = nil
	if !in.done {
		return 0, o.callFailed(t) // and the stub stays: the thread may yet come to it
	}
	_, readErr := memory.ReadAt(block[:], int64(blockAt))
	// The thread need not take the way back through the frame.
	if err := ptrace.SetRegs(t.tid, &resumed); err != nil {
		return 0, o.callFailed(t)
	}
	t.stop = callStop
	ptrace.Reap(t.tid)
	cleanUp()
	if readErr != nil {
		return 0, o.memoryError(blockAt, readErr)
	}
	return in.result, nil
}

// detour sends the thread off.
func (o *owner) detour(t *thread, regs ptrace.Regs) error {
	t.injection = &injection{at: regs.Rip + resident.StubReturn, sp: regs.Rsp}
	if err := ptrace.SetRegs(t.tid, &regs); err != nil {
		t.injection = nil
		return o.callFailed(t)
	}
	t.stop = running
	if err := ptrace.Syscall(t.tid, 0); err != nil {
		t.injection = nil
		return o.callFailed(t)
	}
	return nil
}

func (o *owner) callFailed(t *thread) error {
	if o.ended || o.threads[t.tid] == nil {
		return omis.Errorf(omis.UnknownObject, "process %d has ended", o.proc.PID)
	}
	return omis.Errorf(omis.OSError, "thread %d of process %d did not do what breakpoints need", t.tid, o.proc.PID)
}

// advance is called at each stop of the thread until its call is made. Signal
// handlers of the program may run first, and make system calls of their own.
func (in *injection) advance(o *owner, t *thread, s ptrace.Status) {
	sig := 0
	switch {
	case s.SyscallStop():
		var regs ptrace.Regs
		if ptrace.GetRegs(t.tid, &regs) == nil && regs.Rip == in.at && regs.Rsp == in.sp {
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
		if s.Event() != ptrace.EventStop {
			t.stop = eventStop
			o.family(t, s.Event())
			t.stop = running
		}
	case s.Signal() == int(unix.SIGTRAP) && o.reached(t):
		// A breakpoint in a signal handler of the program. A handler that holds
		// the thread there keeps it from making our call for an unknown time.
		if t.holds > 0 {
			in.failed = true
			return
		}
	default:
		sig = s.Signal()
	}
	if err := ptrace.Syscall(t.tid, sig); err != nil {
		in.failed = true
	}
}
