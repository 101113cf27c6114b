//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// handle deals with one thing the kernel told.
func (o *owner) handle(s ptrace.Status) {
	t := o.threads[s.TID]
	switch {
	case o.isForeign(s):
		if behind, ok := o.poll(); ok {
			o.handle(behind)
		} else {
			time.Sleep(pollEvery)
		}
	case s.Ended():
		if !o.isAwaited(s.TID) {
			ptrace.ReapDead(s.TID)
		}
		o.gone(s, t)
	case s.Cause == ptrace.Stopped:
		// Job control of a child that is not traced: none of our business.
		ptrace.Reap(s.TID)
	case t == nil && s.Event() == unix.PTRACE_EVENT_EXEC:
		o.promoted(s)
	case s.Event() == unix.PTRACE_EVENT_EXIT:
		o.exiting(s.TID, t)
	case t == nil:
		// A new thread or process whose creator has not been heard yet.
		ptrace.Reap(s.TID)
		o.unborn[s.TID] = s
	case t.makesCall():
		t.asked = false
		t.injection.advance(o, t, s)
	default:
		// Every stop consumes a pending interrupt; it is asked for again where needed.
		t.asked = false
		t.setOptions(o.ending.options(t))
		o.stopped(t, s)
	}
}

func (o *owner) stopped(t *thread, s ptrace.Status) {
	switch {
	case s.Event() == ptrace.EventStop:
		o.trapped(t, s)
	case s.Event() != 0:
		t.stop = eventStop
		o.family(t, s.Event())
	case s.SyscallStop():
		o.atSystemCall(t)
	case t.sweptLate(s.Signal()):
		o.pass(t, 0)
	case s.Signal() == int(unix.SIGTRAP) && (o.reached(t) || o.stepped(t)):
	default:
		o.received(t, s.Signal())
	}
}

// trapped is the stop of an interrupted or a new thread, or of one that takes
// part in a group-stop.
func (o *owner) trapped(t *thread, s ptrace.Status) {
	t.stop = trapStop
	if s.Signal() != int(unix.SIGTRAP) {
		t.stop = groupStop
	} else {
		spareEINTR(t.tid)
	}
	if t.kind >= offspring {
		o.arrived(t)
		return
	}
	o.settle(t)
}

// pass delivers a signal. The thread is never kept here: a monitor that dies
// would take the signal with it. One that is to stop is interrupted again.
func (o *owner) pass(t *thread, sig int) {
	o.proceed(t, sig)
	if t.stays(o) || t.kind >= offspring {
		o.interrupt(t)
	}
}

// gone is the end of a thread or child.
func (o *owner) gone(s ptrace.Status, t *thread) {
	defer o.ending.left(s.TID)
	if t == nil {
		if s.TID == o.proc.PID {
			o.finish()
			return
		}
		// The creator's event may still come; it must not wait for this one.
		o.unborn[s.TID] = s
		return
	}
	o.forget(t)
	if t.kind != member {
		return
	}
	o.tell(node.EventThreadTerminated, t, 0)
	if t.tid == o.proc.PID {
		o.finish()
	}
}

// isAwaited tells that a process is a child of the monitor that was not launched
// here: its end is for somebody else to reap, and to the kernel we are the same.
// The owner ends with the process, and with the owner's thread the attachment.
func (o *owner) isAwaited(tid int) bool {
	return tid == o.proc.PID && !o.child && proc.Parent(tid) == os.Getpid()
}

// isForeign tells that something is told of a child of the monitor that this owner does
// not trace, as the warden or a program that somebody runs, whom somebody has started on
// what is now the owner's thread. Its end is for whoever started it, who must find it. If
// it is another owner's process, its stops are that one's, who would wait for them for
// ever: within the monitor the kernel tells them to the parent as well.
func (o *owner) isForeign(s ptrace.Status) bool {
	if o.threads[s.TID] != nil || s.TID == o.proc.PID && s.Cause != ptrace.Trapped {
		return false
	}
	status, err := proc.ReadStatus(s.TID)
	return err != nil || status.Tracer != int(o.box.thread.Load())
}

// pollEvery is how often to look past what is told of a foreign child.
const pollEvery = 200 * time.Microsecond

// poll is ptrace.Poll without foreign children, of whom the kernel tells first, each
// time.
func (o *owner) poll() (ptrace.Status, bool) {
	s, ok := ptrace.Poll()
	if !ok || !o.isForeign(s) {
		return s, ok
	}
	for tid := range o.threads {
		if s, ok := ptrace.PollThread(tid); ok {
			return s, true
		}
	}
	// An execve may have made the process's first thread ours.
	s, ok = ptrace.PollThread(o.proc.PID)
	return s, ok && !o.isForeign(s)
}

// forget takes a thread off the books.
func (o *owner) forget(t *thread) {
	delete(o.threads, t.tid)
	t.stop = running
	t.injection = nil
	o.meeting.lost(t)
	o.ending.forget(t)
	o.endOver(t)
	o.forgetCallsOf(t)
	o.letParentGo(t)
}
