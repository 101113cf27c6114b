//go:build linux && amd64

package linux

import "mirador/omis"

// stopThreads is Node.Stop.
type stopThreads struct {
	*answer
	tids []int
}

func (c stopThreads) do(o *owner) { c.give(o.suspend(c.tids)) }

func (o *owner) suspend(tids []int) error {
	if o.closing {
		return errClosed()
	}
	if o.ended {
		return ended(o.proc.PID)
	}
	if err := o.attach(); err != nil {
		return err
	}
	if err := o.mark(tids, true); err != nil {
		o.restIfIdle()
		return err
	}
	asleep := func(t *thread) bool { return t.kind == member && (o.suspended || t.suspended) }
	o.interruptAll(asleep)
	if !o.pump(patience, func() bool { return o.still(asleep) }) && o.ended {
		return ended(o.proc.PID)
	}
	o.absorb(asleep)
	return nil
}

// continueThreads is Node.Continue.
type continueThreads struct {
	*answer
	tids []int
}

func (c continueThreads) do(o *owner) {
	if o.ended {
		c.give(ended(o.proc.PID))
		return
	}
	err := o.mark(c.tids, false)
	for _, t := range o.threads {
		if t.stopped() && !t.deferred && !t.stays(o) {
			o.resume(t)
		}
	}
	o.restIfIdle()
	c.give(err)
}

// mark notes who is to stay stopped. The process as a whole being stopped, some
// threads going on makes the others stopped one by one.
func (o *owner) mark(tids []int, suspended bool) error {
	if len(tids) == 0 {
		o.suspended = suspended
		for _, t := range o.threads {
			t.suspended = false
		}
		return nil
	}
	for _, tid := range tids {
		if t := o.threads[tid]; (t == nil || t.kind != member) && (suspended || o.whole) {
			return omis.Errorf(omis.UnknownObject, "process %d has no thread %d", o.proc.PID, tid)
		}
	}
	if o.suspended && !suspended {
		o.suspended = false
		for _, t := range o.threads {
			t.suspended = t.kind == member
		}
	}
	for _, tid := range tids {
		if t := o.threads[tid]; t != nil {
			t.suspended = suspended
		}
	}
	return nil
}
