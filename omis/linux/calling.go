//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/resident"
)

// Call: see node.Registers. Outside a system call it does what a call instruction does: it
// pushes the return address, and what is below the stack pointer is lost. A thread in a system
// call gets a frame of its own, from which it restores all its registers when the function
// returns; then it makes the system call again. Code around a system call does not expect the
// effects of a function. If the monitor dies, the thread does all this by itself.
func (n *Node) Call(p omis.ProcID, tid int, addr uint64) error {
	return n.owners.visit(p, tid, callErrand(addr))
}

// callErrand is the address of the function to call.
type callErrand uint64

func (e callErrand) at(o *owner, t *thread) error {
	regs, shown, err := o.readRegs(t)
	switch {
	case err != nil:
		return err
	case t.stop == exitStop:
		return errAtEnd(t)
	case t.stop == eventStop:
		return omis.Errorf(omis.UnsupportedService, "thread %d of process %d is inside clone, fork, vfork or execve, whose result it does not have yet: it can call a function when it has returned from there", t.tid, o.proc.PID)
	case resident.InSyscall(&regs) || t.stop == entryStop || o.injector.beforeSyscall(&regs):
		return o.injector.callInSyscall(t, uint64(e))
	}
	back := shown.Rip
	if o.space.ofCopy(regs.Rip) != regs.Rip {
		back = regs.Rip // it has had its hit there, and continues in the copy, which stays
	}
	now := shown
	now.Rsp -= 8
	if err := o.space.writeMemory(now.Rsp, binary.LittleEndian.AppendUint64(nil, back)); err != nil {
		return err
	}
	now.Rip = uint64(e)
	return o.setRegs(t, regs, shown, now)
}

// beforeSyscall reports whether a thread is about to make a system call, as a thread is that
// has made a call for the monitor in the middle of its own.
func (j *injector) beforeSyscall(regs *ptrace.Regs) bool {
	var code [2]byte
	n, err := proc.ReadMemory(j.o.proc.PID, regs.Rip, code[:])
	return err == nil && n == len(code) && code == [2]byte{0x0f, 0x05}
}

// Go's heap on x86-64, which contains the stacks of goroutines.
const goHeap, goHeapEnd = 0xc0 << 32, 0xe0 << 32

func (j *injector) callInSyscall(t *thread, addr uint64) error {
	back, err := j.returnPoint(addr)
	if err != nil {
		return err
	}
	var regs ptrace.Regs
	if err := ptrace.GetRegs(t.tid, &regs); err != nil {
		return j.o.regsError(t, err)
	}
	if regs.Rsp >= goHeap && regs.Rsp < goHeapEnd {
		return omis.Errorf(omis.UnsupportedService, "thread %d of process %d is in a system call on the stack of a goroutine, which may have no room for another function", t.tid, j.o.proc.PID)
	}
	state, err := ptrace.ExtendedState(t.tid)
	switch {
	case errors.Is(err, unix.ENODEV):
		return omis.Errorf(omis.UnsupportedService, "thread %d of process %d is in a system call, and this processor has no XSAVE, by which its registers could be kept until the function returns", t.tid, j.o.proc.PID)
	case err != nil:
		return j.o.regsError(t, err)
	}
	resumed := j.resumed(t, regs)
	now, frame := resident.CallFrame(resumed, addr, back, state)
	if _, err := j.o.space.memory.WriteAt(frame, int64(now.Rsp)); err != nil {
		return omis.Errorf(omis.OSError, "thread %d of process %d has no room for a call on its stack: %d bytes at %#x cannot be written: %w", t.tid, j.o.proc.PID, len(frame), now.Rsp, unwrapPath(err))
	}
	if err := ptrace.SetRegs(t.tid, &now); err != nil {
		return j.o.regsError(t, err)
	}
	if t.stop == entryStop {
		if t.call.known {
			t.interrupted.push(interruptedCall{t.call, regs.Rsp, regs.Rip})
		}
		t.call = systemCall{}
	}
	t.interrupted.leave()
	return nil
}

// spareEINTR makes a stopped thread repeat a system call that failed with EINTR only because the
// thread was stopped: a program need not be prepared for that. If a signal handler of the
// program runs first, the call fails all the same.
func spareEINTR(tid int) {
	var regs ptrace.Regs
	if ptrace.GetRegs(tid, &regs) == nil && resident.Spare(&regs) {
		_ = ptrace.SetRegs(tid, &regs) // it fails only if the thread is being killed
	}
}

// resumed returns the registers with which a stopped thread repeats its current system call. If
// the stop made the call fail with EINTR, the thread repeats it, unless a signal of the program
// has arrived as well.
func (j *injector) resumed(t *thread, regs ptrace.Regs) ptrace.Regs {
	if t.stop == entryStop {
		return resident.Reissued(regs)
	}
	s, err := proc.ReadThreadStatus(j.o.proc.PID, t.tid)
	if err != nil || (s.Pending|s.Shared)&s.Caught&^s.Blocked != 0 {
		return resident.Resumed(regs)
	}
	return resident.Repeated(regs)
}

// returnPoint writes the code to which functions return that threads call in the middle of a
// system call.
func (j *injector) returnPoint(addr uint64) (uint64, error) {
	if err := j.o.space.settleIn(); err != nil {
		return 0, err
	}
	if j.o.space.home == 0 {
		maps, err := proc.Maps(j.o.proc.PID)
		if err != nil {
			return 0, err
		}
		if err := j.o.space.moveIn(maps, addr); err != nil {
			return 0, err
		}
	}
	back := j.o.space.home.Return()
	if holds(j.o.space.memory, back, resident.ReturnCode) {
		return back, nil
	}
	return back, j.o.space.write(back, resident.ReturnCode)
}
