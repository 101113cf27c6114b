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
func (tr *tracer) handle(s ptrace.Status) {
	t := tr.threads[s.TID]
	switch {
	case tr.isForeign(s):
		if behind, ok := tr.poll(); ok {
			tr.handle(behind)
		} else {
			time.Sleep(pollEvery)
		}
	case s.Ended():
		if !tr.isAwaited(s.TID) {
			ptrace.ReapDead(s.TID)
		}
		tr.gone(s, t)
	case s.Cause == ptrace.Stopped:
		// Job control of a child that is not traced: none of our business.
		ptrace.Reap(s.TID)
	case t == nil && s.Event() == unix.PTRACE_EVENT_EXEC:
		tr.o.family.promoted(s)
	case s.Event() == unix.PTRACE_EVENT_EXIT:
		tr.o.exiting(s.TID, t)
	case t == nil:
		// A new thread or process whose creator has not been heard yet.
		ptrace.Reap(s.TID)
		tr.o.family.unborn[s.TID] = s
	case t.makesCall():
		t.asked = false
		t.injection.advance(tr.o, t, s)
	default:
		// Every stop consumes a pending interrupt; it is asked for again where needed.
		t.asked = false
		t.setOptions(tr.o.ending.options(t))
		tr.stopped(t, s)
	}
}

func (tr *tracer) stopped(t *thread, s ptrace.Status) {
	switch {
	case s.Event() == ptrace.EventStop:
		tr.trapped(t, s)
	case s.Event() != 0:
		t.stop = eventStop
		tr.o.family.happened(t, s.Event())
	case s.SyscallStop():
		tr.o.events.atSystemCall(t)
	case t.sweptLate(s.Signal()):
		tr.pass(t, 0)
	case s.Signal() == int(unix.SIGTRAP) && (tr.o.events.reached(t) || tr.o.steps.stepped(t)):
	default:
		tr.received(t, s.Signal())
	}
}

// trapped is the stop of an interrupted or a new thread, or of one that takes
// part in a group-stop.
func (tr *tracer) trapped(t *thread, s ptrace.Status) {
	t.stop = trapStop
	if s.Signal() != int(unix.SIGTRAP) {
		t.stop = groupStop
	} else {
		spareEINTR(t.tid)
	}
	if t.kind >= offspring {
		tr.o.family.arrived(t)
		return
	}
	tr.settle(t)
}

// pass delivers a signal. The thread is never kept here: a monitor that dies
// would take the signal with it. One that is to stop is interrupted again.
func (tr *tracer) pass(t *thread, sig int) {
	tr.proceed(t, sig)
	if t.stays(tr.o) || t.kind >= offspring {
		tr.interrupt(t)
	}
}

// gone is the end of a thread or child.
func (tr *tracer) gone(s ptrace.Status, t *thread) {
	defer tr.o.ending.left(s.TID)
	if t == nil {
		if s.TID == tr.o.proc.PID {
			tr.o.finish()
			return
		}
		// The creator's event may still come; it must not wait for this one.
		tr.o.family.unborn[s.TID] = s
		return
	}
	tr.forget(t)
	if t.kind != member {
		return
	}
	tr.o.events.tell(node.EventThreadTerminated, t, 0)
	if t.tid == tr.o.proc.PID {
		tr.o.finish()
	}
}

// isAwaited tells that a process is a child of the monitor that was not launched
// here: its end is for somebody else to reap, and to the kernel we are the same.
// The owner ends with the process, and with the owner's thread the attachment.
func (tr *tracer) isAwaited(tid int) bool {
	return tid == tr.o.proc.PID && !tr.o.child && proc.Parent(tid) == os.Getpid()
}

// isForeign tells that something is told of a child of the monitor that this owner does
// not trace, as the warden or a program that somebody runs, whom somebody has started on
// what is now the owner's thread. Its end is for whoever started it, who must find it. If
// it is another owner's process, its stops are that one's, who would wait for them for
// ever: within the monitor the kernel tells them to the parent as well.
func (tr *tracer) isForeign(s ptrace.Status) bool {
	if tr.threads[s.TID] != nil || s.TID == tr.o.proc.PID && s.Cause != ptrace.Trapped {
		return false
	}
	status, err := proc.ReadStatus(s.TID)
	return err != nil || status.Tracer != int(tr.o.box.thread.Load())
}

// pollEvery is how often to look past what is told of a foreign child.
const pollEvery = 200 * time.Microsecond

// poll is ptrace.Poll without foreign children, of whom the kernel tells first, each
// time.
func (tr *tracer) poll() (ptrace.Status, bool) {
	s, ok := ptrace.Poll()
	if !ok || !tr.isForeign(s) {
		return s, ok
	}
	for tid := range tr.threads {
		if s, ok := ptrace.PollThread(tid); ok {
			return s, true
		}
	}
	// An execve may have made the process's first thread ours.
	s, ok = ptrace.PollThread(tr.o.proc.PID)
	return s, ok && !tr.isForeign(s)
}

// forget takes a thread off the books.
func (tr *tracer) forget(t *thread) {
	delete(tr.threads, t.tid)
	t.stop = running
	t.injection = nil
	tr.o.meeting.lost(t)
	tr.o.ending.forget(t)
	tr.o.steps.endOver(t)
	tr.o.library.forgetCallsOf(t)
	tr.o.family.letParentGo(t)
}
