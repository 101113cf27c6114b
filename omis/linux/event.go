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

// handle handles one status that the kernel reported.
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
		// A child that is not traced was stopped by job control.
		ptrace.Reap(s.TID)
	case t == nil && s.Event() == unix.PTRACE_EVENT_EXEC:
		tr.o.family.promoted(s)
	case s.Event() == unix.PTRACE_EVENT_EXIT:
		tr.o.exiting(s.TID, t)
	case t == nil:
		// The creation of this thread or process is not reported yet.
		ptrace.Reap(s.TID)
		tr.o.family.unborn[s.TID] = s
	case t.makesCall():
		t.asked = false
		t.injection.advance(tr.o, t, s)
	default:
		// Every stop consumes a pending interrupt; where it is still needed, it is requested
		// again.
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

// trapped handles the stop of an interrupted or new thread, or of one that takes part in a
// group-stop.
func (tr *tracer) trapped(t *thread, s ptrace.Status) {
	t.stop = trapStop
	if s.Signal() != int(unix.SIGTRAP) {
		t.stop = groupStop
	} else {
		spareEINTR(t.tid)
	}
	if t.kind >= forked {
		tr.o.family.arrived(t)
		return
	}
	tr.settle(t)
}

// pass delivers a signal. The thread is never kept in this stop: if the monitor died then, the
// signal would be lost. If the thread is to stop, it is interrupted again.
func (tr *tracer) pass(t *thread, sig int) {
	tr.proceed(t, sig)
	if t.stays(tr.o) || t.kind >= forked {
		tr.interrupt(t)
	}
}

// gone handles the end of a thread or child.
func (tr *tracer) gone(s ptrace.Status, t *thread) {
	defer tr.o.ending.left(s.TID)
	if t == nil {
		if s.TID == tr.o.proc.PID {
			tr.o.finish()
			return
		}
		// The creator's event may still come; the creator must not wait for this thread.
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

// isAwaited reports whether a process is a child of the monitor that its owner did not launch.
// Then the code that started it must reap it, and to the kernel all threads of the monitor are
// the same. The owner ends with the process, and the attachment with the owner's thread.
func (tr *tracer) isAwaited(tid int) bool {
	return tid == tr.o.proc.PID && !tr.o.child && proc.Parent(tid) == os.Getpid()
}

// isForeign reports whether a status belongs to a child of the monitor that this owner does not
// trace, such as the warden: some goroutine started it on the thread that is the owner's now.
// The code that started it must see its end. If it is another owner's process, that owner
// must see its stops, or it would wait for ever: within the monitor, the kernel reports the
// stops to the parent as well.
func (tr *tracer) isForeign(s ptrace.Status) bool {
	if tr.threads[s.TID] != nil || s.TID == tr.o.proc.PID && s.Cause != ptrace.Trapped {
		return false
	}
	status, err := proc.ReadStatus(s.TID)
	return err != nil || status.Tracer != int(tr.o.box.thread.Load())
}

// pollEvery is the interval at which the owner looks for statuses of its own threads while the
// status of a foreign child waits.
const pollEvery = 200 * time.Microsecond

// poll is ptrace.Poll without foreign children, which the kernel would report first each time.
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
	// An execve may have replaced the process's first thread by a traced one.
	s, ok = ptrace.PollThread(tr.o.proc.PID)
	return s, ok && !tr.isForeign(s)
}

// forget removes a thread.
func (tr *tracer) forget(t *thread) {
	delete(tr.threads, t.tid)
	t.stop = running
	t.injection = nil
	tr.o.lives.end(t.tid)
	tr.o.meeting.lost(t)
	tr.o.ending.forget(t)
	tr.o.steps.endOver(t)
	tr.o.library.forgetThread(t)
	tr.o.family.letParentGo(t)
}
