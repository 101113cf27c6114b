//go:build linux && amd64

package linux

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/proc"
	"mirador/omis/linux/ptrace"
)

// patience is how long a thread may take to stop. Only one in an uninterruptible
// wait takes longer than microseconds, for example the parent of a vfork.
const patience = 300 * time.Millisecond

// attach traces every thread of the process, without stopping any.
func (o *owner) attach() error {
	if o.whole {
		return nil
	}
	// A pass without a newcomer: whatever is born now has a traced parent, and
	// comes to us by itself.
	for fresh := true; fresh; {
		tids, err := proc.Threads(o.proc.PID)
		if err != nil {
			return err
		}
		if fresh, err = o.seize(tids); err != nil {
			return err
		}
	}
	o.whole = true
	return nil
}

// seize attaches those threads that are not ours yet.
func (o *owner) seize(tids []int) (fresh bool, err error) {
	for _, tid := range tids {
		if o.threads[tid] != nil {
			continue
		}
		if _, stopped := o.unborn[tid]; stopped {
			continue
		}
		switch err := o.seizeThread(tid); {
		case err == nil:
			o.threads[tid] = &thread{tid: tid, pid: o.proc.PID, kind: o.node.roleOf(o.proc, tid)}
			fresh = true
		case errors.Is(err, unix.ESRCH) || threadEnded(o.proc.PID, tid):
		case errors.Is(err, unix.EPERM) && o.isOurs(tid):
			// Born after the listing, of a traced parent.
		default:
			return fresh, o.refused(err)
		}
	}
	return fresh, nil
}

// refused explains a failed attachment as Identify would.
func (o *owner) refused(cause error) error {
	if _, err := proc.Identify(o.proc.PID); err != nil {
		return err
	}
	return omis.Errorf(omis.NoPermission, "cannot attach to process %d: %v", o.proc.PID, cause)
}

// isOurs tells whether this OS thread is the tracer already.
func (o *owner) isOurs(tid int) bool {
	s, err := proc.ReadThreadStatus(o.proc.PID, tid)
	return err == nil && s.Tracer == int(o.box.thread.Load())
}

func threadEnded(pid, tid int) bool {
	s, err := proc.ThreadState(pid, tid)
	return err != nil || s == "Z" || s == "X"
}

// freeze stops all threads for which among says so (nil: all), asking all before
// waiting for any, and keeps them until thaw. Those in an uninterruptible wait
// go on sleeping; they stop when they wake.
func (o *owner) freeze(among func(*thread) bool) {
	o.frozen++
	o.interruptAll(among)
	o.pump(patience, func() bool { return o.still(among) })
	o.absorb(among)
}

func (o *owner) interruptAll(among func(*thread) bool) {
	for _, t := range o.threads {
		if among == nil || among(t) {
			o.interrupt(t)
		}
	}
}

// still interrupts newcomers and tells whether everybody has stopped.
func (o *owner) still(among func(*thread) bool) bool {
	for _, t := range o.threads {
		if (among == nil || among(t)) && !t.stopped() {
			o.interruptAll(among)
			return false
		}
	}
	return true
}

// absorb deals with threads that have run into a breakpoint but were interrupted
// before its signal came: it makes the signal come. They must not be interrupted
// on the way: that stop would be told before the signal, as the first one was.
func (o *owner) absorb(among func(*thread) bool) {
	for {
		var late []*thread
		for _, t := range o.threads {
			if (among == nil || among(t)) && t.stop == trapStop && o.pendingTrap(t) {
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
		if !o.pump(patience, func() bool { return o.allStopped(late) }) {
			return
		}
	}
}

// allStopped tells whether those of the threads that are still there have
// stopped.
func (o *owner) allStopped(threads []*thread) bool {
	for _, t := range threads {
		if o.threads[t.tid] == t && !t.stopped() {
			return false
		}
	}
	return true
}

// allSettled tells whether every thread has stopped and none is yet to be told
// of a breakpoint.
func (o *owner) allSettled() bool {
	for _, t := range o.threads {
		if !t.stopped() || o.pendingTrap(t) {
			return false
		}
	}
	return true
}

// pendingTrap tells whether a stopped thread's next step is the signal of a
// breakpoint or of a single step.
func (o *owner) pendingTrap(t *thread) bool {
	if len(o.space.table) == 0 && !t.stepper.used {
		return false
	}
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) != nil || o.space.table[regs.Rip-1] == nil && !t.stepper.used {
		return false
	}
	s, err := proc.ReadThreadStatus(t.pid, t.tid)
	return err == nil && s.Pending&proc.SignalBit(unix.SIGTRAP) != 0
}

// thaw ends a freeze: who has no other reason to stay goes on.
func (o *owner) thaw() {
	o.frozen--
	if o.frozen > 0 {
		return
	}
	for _, t := range o.threads {
		if t.stopped() && !t.deferred && !t.stays(o) {
			o.resume(t)
		}
	}
}

// leave lets the whole process go: the handler goes first, then the attachment.
// As long as somebody may yet be told of a breakpoint, the handler stays; those
// who did not stop in time are let go by a later call.
func (o *owner) leave() {
	if len(o.threads) == 0 {
		return
	}
	o.freeze(nil)
	o.attendBirths()
	o.releaseOffspring()
	if o.allSettled() {
		o.disarm()
	}
	for _, t := range o.threads {
		if !t.stopped() {
			continue
		}
		o.reblock(t)
		t.clearFlag()
		_ = ptrace.Detach(t.tid, 0)
		o.forget(t)
	}
	o.endRound()
	o.thaw()
	o.whole = false
}
