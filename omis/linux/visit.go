//go:build linux && amd64

package linux

import (
	"mirador/omis"
)

// errand is something to do with a thread while it is stopped.
type errand interface {
	at(o *owner, t *thread) error
}

// visit stops a thread, runs an errand, and continues the thread.
type visit struct {
	tid    int
	errand errand
}

func (w *owners) visit(p omis.ProcID, tid int, e errand) error { return w.ask(p, visit{tid, e}) }

func (c visit) do(o *owner) error {
	defer o.restIfIdle()
	return o.visit(c.tid, c.errand)
}

func (o *owner) visit(tid int, e errand) error {
	if err := o.over(); err != nil {
		return err
	}
	if !isThread(o.proc.PID, tid) {
		return noThread(o.proc, tid)
	}
	if _, err := o.tracer.seize([]int{tid}); err != nil {
		return err
	}
	among := func(t *thread) bool { return t.tid == tid }
	o.tracer.freeze(among)
	defer o.tracer.thaw()
	o.meeting.comeOut(among)
	t := o.tracer.threads[tid]
	switch {
	case t == nil || o.ending.isLeaving(t) && t.stop != exitStop:
		return noThread(o.proc, tid)
	case !t.stopped():
		return omis.Errorf(omis.OSError, "thread %d of process %d cannot be stopped: it waits uninterruptibly in the kernel", tid, o.proc.PID)
	case o.meeting.isHolding(t):
		return omis.Errorf(omis.OSError, "thread %d of process %d was stopped by a signal on its way through code of the monitor; it can be looked at when it was continued", tid, o.proc.PID)
	}
	if err := o.sameUser(); err != nil {
		return err
	}
	return e.at(o, t)
}
