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

// patience bounds the time in which a thread must stop. Only threads in an uninterruptible
// wait, such as the parent of a vfork, take longer than microseconds.
const patience = 300 * time.Millisecond

// turn bounds the time for which a thread may wait for a busy processor before it can stop.
const turn = 30 * time.Second

// restless bounds the time for which a process may prevent its attachment by executing one
// program after another.
const restless = 2 * time.Second

// attach traces every thread of the process, and stops none.
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
		// The last pass found no new thread. A thread that is created from now on has a
		// traced creator, and is traced from the beginning.
		if !fresh && !tr.replaced() {
			tr.whole = true
			return tr.o.sameUser()
		}
	}
	return omis.Errorf(omis.OSError, "cannot attach to process %d: its threads do nothing but execute programs", tr.o.proc.PID)
}

// seize attaches the threads of the list that are not traced yet.
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

// include adds a thread that was just attached. The thread may have another id by now: if the
// attachment had to wait for an execve of this thread, the thread is the first one of the
// process.
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

// seizePatiently attaches one thread and reports whether it did. It does not attach a thread
// that has ended, or that is traced already because its creator was; the kernel returns EPERM
// for both. If neither is the case and the process has no other tracer, then an execve has
// replaced the thread, or another owner has just detached it; seizePatiently tries again.
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
		case omis.StatusOf(proc.MayTrace(tr.o.proc.PID)) == omis.NoPermission || proc.Alive(tr.o.proc) != nil:
			// During an execve the process may look like that for a moment.
			if _, err := proc.Identify(tr.o.proc.PID); err != nil {
				return false, err
			}
		}
	}
}

// refused returns the reason for a failed attachment as Identify would.
func (tr *tracer) refused(cause error) error {
	if _, err := proc.Identify(tr.o.proc.PID); err != nil {
		return err
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: %w", tr.o.proc.PID, cause)
}

// isOurs reports whether this OS thread traces a thread already.
func (tr *tracer) isOurs(tid int) bool {
	s, err := proc.ReadThreadStatus(tr.o.proc.PID, tid)
	return err == nil && s.Tracer == int(tr.o.box.thread.Load())
}

// replaced reports whether the first thread is not traced any more, and forgets it then. The
// kernel does not report that a thread that is not traced executes a program: it gives that
// thread the first one's id, and drops the first one together with its attachment. (It reports
// the ends of the other threads as usual.)
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

// threadEnded reads twice, for the same reason as proc.Alive.
func threadEnded(pid, tid int) bool {
	for range 2 {
		if s, err := proc.ThreadState(pid, tid); err == nil && s != "Z" && s != "X" {
			return false
		}
	}
	return true
}

// freeze stops all threads that among selects (nil: all), and keeps them stopped until thaw.
// It interrupts all before it waits for any. Threads in an uninterruptible wait stop when they
// wake.
func (tr *tracer) freeze(among func(*thread) bool) {
	tr.frozen++
	tr.interruptAll(among)
	tr.awaitStop(among)
	tr.absorb(among)
}

// awaitStop waits until the interrupted threads have stopped, and returns false if not all
// have.
func (tr *tracer) awaitStop(among func(*thread) bool) bool {
	for end := time.Now().Add(turn); !tr.pump(patience, func() bool { return tr.still(among) }); {
		if !tr.runnable(among) || time.Now().After(end) {
			return false
		}
	}
	return true
}

// runnable reports whether a thread has not stopped because it waits for a processor.
func (tr *tracer) runnable(among func(*thread) bool) bool {
	for _, t := range tr.threads {
		if (among == nil || among(t)) && !t.stopped() && t.isReady() {
			return true
		}
	}
	return false
}

// isReady reports whether a thread has a processor or waits for one, or has stopped without
// its owner having noticed, because the owner had to wait for a processor itself.
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

// still reports whether all threads have stopped, and interrupts new ones.
func (tr *tracer) still(among func(*thread) bool) bool {
	for _, t := range tr.threads {
		if (among == nil || among(t)) && !t.stopped() && !tr.o.ending.isLeaving(t) {
			tr.interruptAll(among)
			return false
		}
	}
	return true
}

// absorb handles threads that have run into a breakpoint, of the monitor or of the program
// itself, but were interrupted before its signal came. It lets the signal come. They must not
// be interrupted again before that: the kernel would report that stop before the signal, as it
// did the first time.
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

// allStopped reports whether those of the threads that still exist have stopped.
func (tr *tracer) allStopped(threads []*thread) bool {
	for _, t := range threads {
		if tr.threads[t.tid] == t && !t.stopped() {
			return false
		}
	}
	return true
}

// allSettled reports whether every thread has stopped, and no signal of a breakpoint is still
// to come.
func (tr *tracer) allSettled() bool {
	for _, t := range tr.threads {
		if !tr.o.ending.isLeaving(t) && (!t.stopped() || ptrace.WillTrap(t.tid)) {
			return false
		}
	}
	return true
}

// thaw ends a freeze: threads that nothing else keeps continue.
func (tr *tracer) thaw() {
	tr.frozen--
	if tr.frozen > 0 {
		return
	}
	tr.resumeAll()
}
