//go:build linux && amd64

package linux

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// patience is how long a thread may take to stop. Only one in an uninterruptible
// wait takes longer than microseconds, for example the parent of a vfork.
const patience = 300 * time.Millisecond

// turn is how long one may wait for a processor that others keep busy, before it can
// stop.
const turn = 30 * time.Second

// restless is how long a process may keep us from attaching to it whole, by
// executing one program after another.
const restless = 2 * time.Second

// attach traces every thread of the process, without stopping any.
func (tr *tracer) attach() error {
	if tr.whole {
		return tr.o.sameUser()
	}
	for deadline := time.Now().Add(restless); time.Now().Before(deadline); {
		tids, err := proc.Threads(tr.o.proc.PID)
		if err != nil {
			return err
		}
		fresh, err := tr.seize(tids)
		if err != nil {
			return err
		}
		// A pass without a newcomer: whatever is born now has a traced parent, and
		// comes to us by itself.
		if !fresh && !tr.replaced() {
			tr.whole = true
			return tr.o.sameUser()
		}
	}
	return omis.Errorf(omis.OSError, "cannot attach to process %d: its threads do nothing but execute programs", tr.o.proc.PID)
}

// seize attaches those threads that are not ours yet.
func (tr *tracer) seize(tids []int) (fresh bool, err error) {
	for _, tid := range tids {
		if tr.threads[tid] != nil {
			continue
		}
		if _, stopped := tr.o.family.unborn[tid]; stopped {
			continue
		}
		seized, err := tr.seizePatiently(tid)
		if err != nil {
			return fresh, err
		}
		if seized {
			tr.include(tid)
			fresh = true
		}
	}
	return fresh, nil
}

// include takes a thread in that was just attached. It may have another id by
// now: when an attachment has had to wait for an execve of the very thread, it
// is to the process's first thread.
func (tr *tracer) include(tid int) {
	if first := tr.o.proc.PID; tid != first && !isThread(first, tid) {
		if former := tr.threads[first]; former != nil {
			tr.forget(former)
		}
		tr.o.space.vacate()
		tid = first
	}
	tr.threads[tid] = &thread{tid: tid, pid: tr.o.proc.PID, kind: tr.o.node.released.roleOf(tr.o.proc, tid)}
}

// seizePatiently attaches one thread and tells whether it did: not one that has
// ended or is ours already, having been born of a traced parent. The kernel
// says EPERM of both. If it is neither when we look, and nobody stands in the
// way, then it was: an execve has put another thread in its place, or another
// owner has just let it go.
func (tr *tracer) seizePatiently(tid int) (bool, error) {
	for deadline := time.Now().Add(patience); ; tr.drain() {
		err := tr.seizeThread(tid)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.ESRCH) || threadEnded(tr.o.proc.PID, tid):
			return false, nil
		case !errors.Is(err, unix.EPERM):
			return false, tr.refused(err)
		case tr.isOurs(tid):
			return false, nil
		case time.Now().After(deadline):
			return false, tr.refused(err)
		case isRefused(proc.MayTrace(tr.o.proc.PID)) || proc.Alive(tr.o.proc) != nil:
			// In the midst of an execve it may look so for a moment.
			if _, err := proc.Identify(tr.o.proc.PID); err != nil {
				return false, err
			}
		}
	}
}

func isRefused(err error) bool {
	var e *omis.Error
	return errors.As(err, &e) && e.Status == omis.NoPermission
}

// refused explains a failed attachment as Identify would.
func (tr *tracer) refused(cause error) error {
	if _, err := proc.Identify(tr.o.proc.PID); err != nil {
		return err
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: %v", tr.o.proc.PID, cause)
}

// isOurs tells whether this OS thread is the tracer already.
func (tr *tracer) isOurs(tid int) bool {
	s, err := proc.ReadThreadStatus(tr.o.proc.PID, tid)
	return err == nil && s.Tracer == int(tr.o.box.thread.Load())
}

// replaced forgets the first thread when it is not ours any more, and tells
// whether it is so. Nobody is told when a thread that we do not trace executes a
// program: the kernel gives it the first one's id and drops the first one, with
// our attachment. (The others are told of as usual before.)
func (tr *tracer) replaced() bool {
	first := tr.threads[tr.o.proc.PID]
	if first == nil || proc.Alive(tr.o.proc) != nil {
		return false
	}
	s, err := proc.ReadThreadStatus(tr.o.proc.PID, tr.o.proc.PID)
	if err != nil || s.Tracer == int(tr.o.box.thread.Load()) {
		return false
	}
	tr.forget(first)
	tr.o.space.vacate()
	tr.whole = false
	return true
}

// threadEnded looks twice, as proc.Alive does and for the same reason.
func threadEnded(pid, tid int) bool {
	for range 2 {
		if s, err := proc.ThreadState(pid, tid); err == nil && s != "Z" && s != "X" {
			return false
		}
	}
	return true
}

// freeze stops all threads for which among says so (nil: all), asking all before
// waiting for any, and keeps them until thaw. Those in an uninterruptible wait
// go on sleeping; they stop when they wake.
func (tr *tracer) freeze(among func(*thread) bool) {
	tr.frozen++
	tr.interruptAll(among)
	tr.awaitStop(among)
	tr.absorb(among)
}

// awaitStop waits until threads have stopped that were asked to; false: not all have.
func (tr *tracer) awaitStop(among func(*thread) bool) bool {
	for end := time.Now().Add(turn); !tr.pump(patience, func() bool { return tr.still(among) }); {
		if !tr.runnable(among) || time.Now().After(end) {
			return false
		}
	}
	return true
}

// runnable tells whether a thread has not stopped because others have its processor.
func (tr *tracer) runnable(among func(*thread) bool) bool {
	for _, t := range tr.threads {
		if (among == nil || among(t)) && !t.stopped() && t.isReady() {
			return true
		}
	}
	return false
}

// isReady tells whether a thread has a processor, or waits for one; or has stopped, which
// its owner has not heard yet, having had to wait for one itself.
func (t *thread) isReady() bool {
	s, err := proc.ThreadState(t.pid, t.tid)
	return err == nil && (s == "R" || s == "t")
}

func (tr *tracer) interruptAll(among func(*thread) bool) {
	for _, t := range tr.threads {
		if among == nil || among(t) {
			tr.interrupt(t)
		}
	}
}

// still interrupts newcomers and tells whether everybody has stopped.
func (tr *tracer) still(among func(*thread) bool) bool {
	for _, t := range tr.threads {
		if (among == nil || among(t)) && !t.stopped() && !tr.o.ending.isLeaving(t) {
			tr.interruptAll(among)
			return false
		}
	}
	return true
}

// absorb deals with threads that have run into a breakpoint, of ours or of the program's
// own, but were interrupted before its signal came: it makes the signal come. They must not be interrupted
// on the way: that stop would be told before the signal, as the first one was.
func (tr *tracer) absorb(among func(*thread) bool) {
	for {
		var late []*thread
		for _, t := range tr.threads {
			if (among == nil || among(t)) && t.stop == trapStop && ptrace.WillTrap(t.tid) {
				late = append(late, t)
			}
		}
		if len(late) == 0 {
			return
		}
		for _, t := range late {
			t.stop = running
			_ = ptrace.Cont(t.tid, 0)
		}
		if !tr.pump(patience, func() bool { return tr.allStopped(late) }) {
			return
		}
	}
}

// allStopped tells whether those of the threads that are still there have
// stopped.
func (tr *tracer) allStopped(threads []*thread) bool {
	for _, t := range threads {
		if tr.threads[t.tid] == t && !t.stopped() {
			return false
		}
	}
	return true
}

// allSettled tells whether every thread has stopped and none is yet to be told
// of a breakpoint.
func (tr *tracer) allSettled() bool {
	for _, t := range tr.threads {
		if !tr.o.ending.isLeaving(t) && (!t.stopped() || ptrace.WillTrap(t.tid)) {
			return false
		}
	}
	return true
}

// thaw ends a freeze: who has no other reason to stay goes on.
func (tr *tracer) thaw() {
	tr.frozen--
	if tr.frozen > 0 {
		return
	}
	tr.resumeAll()
}
