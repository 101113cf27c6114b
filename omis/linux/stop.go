//go:build linux && amd64

package linux

import (
	"mirador/omis/node"
)

// stopThreads is Node.Stop.
type stopThreads struct {
	*answer
	tids []int
}

func (c stopThreads) do(o *owner) { c.give(o.halt(c.tids)) }

func (o *owner) halt(tids []int) error {
	if err := o.prepareStop(tids); err != nil {
		o.restIfIdle()
		return err
	}
	before := o.allHalted()
	o.markHalted(tids, true)
	if err := o.bringToRest((*thread).isHalted); err != nil {
		return err
	}
	for _, t := range o.threads {
		if t.isHalted(o) && !before[t] {
			o.tell(node.EventThreadStopped, t, 0)
		}
	}
	return nil
}

// prepareStop attaches to the process and checks that the threads are its.
func (o *owner) prepareStop(tids []int) error {
	if o.closing {
		return errClosed()
	}
	if o.ended {
		return ended(o.proc.PID)
	}
	if err := o.attach(); err != nil {
		return err
	}
	return o.known(tids)
}

// known refuses threads that are none of the process's.
func (o *owner) known(tids []int) error {
	for _, tid := range tids {
		if t := o.threads[tid]; t == nil || t.kind != member {
			return noThread(o.proc, tid)
		}
	}
	return nil
}

// bringToRest waits until all threads have stopped that are to.
func (o *owner) bringToRest(toRest func(*thread, *owner) bool) error {
	among := func(t *thread) bool { return toRest(t, o) }
	o.interruptAll(among)
	if !o.awaitStop(among) && o.ended {
		return ended(o.proc.PID)
	}
	o.absorb(among)
	o.meeting.comeOut(among)
	return nil
}

// continueThreads is Node.Continue.
type continueThreads struct {
	*answer
	tids []int
}

func (c continueThreads) do(o *owner) {
	err := o.unhalt(c.tids)
	o.goOn()
	c.give(err)
}

func (o *owner) unhalt(tids []int) error {
	if o.ended {
		return ended(o.proc.PID)
	}
	if o.whole {
		if err := o.known(tids); err != nil {
			return err
		}
	}
	before := o.allHalted()
	o.markHalted(tids, false)
	for t := range before {
		if !t.isHalted(o) {
			o.tell(node.EventThreadContinued, t, 0)
		}
	}
	return nil
}

// goOn is called when less keeps threads than before. Where nothing is left that
// the process has to be traced for, its threads go on untraced, without being
// stopped once more for that.
func (o *owner) goOn() {
	if o.needsTracing() {
		o.resumeAll()
		return
	}
	o.leave()
}

// resumeAll lets those threads go on that nothing keeps any more. New processes wait to be
// let go otherwise: one that ran before it is clean would come to a breakpoint.
func (o *owner) resumeAll() {
	o.precedence.begin()
	defer o.precedence.end()
	for _, t := range o.threads {
		if t.stopped() && !t.deferred && t.kind < offspring && !t.stays(o) {
			o.resume(t)
		}
	}
}

func (o *owner) allHalted() map[*thread]bool {
	halted := make(map[*thread]bool)
	for _, t := range o.threads {
		if t.isHalted(o) {
			halted[t] = true
		}
	}
	return halted
}

// markHalted notes who is to stay stopped. The process as a whole being stopped,
// some threads going on makes the others stopped one by one.
func (o *owner) markHalted(tids []int, halted bool) {
	if len(tids) == 0 {
		o.halted = halted
		for _, t := range o.threads {
			t.halted = false
		}
		return
	}
	if o.halted && !halted {
		o.halted = false
		for _, t := range o.threads {
			t.halted = t.kind == member
		}
	}
	for _, tid := range tids {
		if t := o.threads[tid]; t != nil {
			t.halted = halted
		}
	}
}
