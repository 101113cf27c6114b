//go:build linux && amd64

package linux

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
)

// watch is one Watch of the node.
type watch struct {
	node.Watch
	handle func(*node.Hit)
	number uint64 // in the order they were set
	inner  bool   // ours: its handler wants the thread stopped by ptrace
	over   bool   // it has been taken away; guarded by owner.calls
	call   int    // EventSysCall…: the number of the one that is watched, -1 for all
	socket bool   // only such calls whose first argument is a socket

	library *libraryWatch // EventLibCall…
}

// answer is how a command tells that it is done.
type answer struct {
	done chan struct{}
	err  error
}

func newAnswer() *answer { return &answer{done: make(chan struct{})} }

func (a *answer) give(err error) {
	a.err = err
	close(a.done)
}

// setWatch begins a watch that needs tracing.
type setWatch struct {
	*answer
	w *watch
}

func (c setWatch) do(o *owner) {
	o.guard(c.w)
	err := o.watch(c.w)
	if err != nil {
		o.restIfIdle()
	}
	c.give(err)
}

// guard has a watch's handler called by one goroutine at a time, and not any more
// when the watch was taken away.
func (o *owner) guard(w *watch) {
	handle := w.handle
	w.handle = func(h *node.Hit) {
		o.calls.Lock()
		defer o.calls.Unlock()
		if !w.over {
			handle(h)
		}
	}
}

func (o *owner) watch(w *watch) error {
	if o.closing {
		return errClosed()
	}
	if o.ended {
		return ended(o.proc.PID)
	}
	if err := o.attach(); err != nil {
		return err
	}
	if w.Event == node.EventReachedAddr {
		return o.watchAddr(w)
	}
	if err := o.prepare(w); err != nil {
		return err
	}
	o.watches[w] = struct{}{}
	at, _ := slices.BinarySearchFunc(o.kinds[w.Event], w, func(a, b *watch) int { return int(a.number) - int(b.number) })
	o.kinds[w.Event] = slices.Insert(o.kinds[w.Event], at, w)
	o.changeGait(w.Event, 1)
	return nil
}

// prepare does what a kind of event takes.
func (o *owner) prepare(w *watch) error {
	switch {
	case isStep(w.Event):
		return o.prepareSteps()
	case isLibraryCall(w.Event):
		return o.watchLibrary(w)
	}
	return nil
}

// watchAddr has threads held at an address: where they can be, without stopping
// them.
func (o *owner) watchAddr(w *watch) error {
	if err := o.isReached(w); err != nil {
		return err
	}
	if o.meeting.meet(w) {
		o.watches[w] = struct{}{}
		return nil
	}
	b, err := o.space.plant(w.Addr)
	if err != nil {
		return err
	}
	b.watches = append(b.watches, w)
	o.watches[w] = struct{}{}
	return nil
}

// changeGait is called when watches for an event have been added or taken away:
// some events ask for threads to run in another way, beginning now.
func (o *owner) changeGait(kind node.EventKind, by int) {
	if kind == node.EventProcTerminated {
		o.ending.watchesChanged()
	}
	if !isStep(kind) && !isSystemCall(kind) {
		return
	}
	o.watchful += by
	if o.ended {
		return
	}
	if by > 0 {
		o.meeting.giveWayEverywhere()
	}
	o.freeze(nil)
	o.thaw()
	o.lookAhead()
	if o.stepping && len(o.kinds[node.EventStepped])+len(o.kinds[node.EventSteppedOver]) == 0 {
		o.endSteps()
	}
}

// endWatch takes a watch away.
type endWatch struct {
	*answer
	w *watch
}

func (c endWatch) do(o *owner) {
	err := o.unwatch(c.w)
	o.restIfIdle()
	c.give(err)
}

func (o *owner) unwatch(w *watch) error {
	if _, stands := o.watches[w]; !stands {
		return nil // it went with the program it stood in
	}
	delete(o.watches, w)
	o.calls.Lock()
	w.over = true
	o.calls.Unlock()
	same := func(other *watch) bool { return other == w }
	if w.Event != node.EventReachedAddr {
		o.kinds[w.Event] = slices.DeleteFunc(o.kinds[w.Event], same)
		o.changeGait(w.Event, -1)
		if w.library != nil {
			o.unwatchLibrary(w)
		}
		return nil
	}
	b := o.space.breakpoints[w.Addr]
	if b == nil {
		return o.meeting.unmeet(w)
	}
	b.watches = slices.DeleteFunc(b.watches, same)
	if len(b.watches) > 0 {
		return nil
	}
	return o.space.uproot(b)
}

// restIfIdle detaches at once when nothing stands any more, so that whoever took
// the last thing away finds the process untraced.
func (o *owner) restIfIdle() {
	if !o.needsTracing() {
		o.leave()
	}
}

// concerns tells whether a watch is about a thread.
func (w *watch) concerns(t *thread) bool {
	return len(w.Threads) == 0 || slices.Contains(w.Threads, t.tid)
}

// concerned tells whether some watch for a kind of event is about a thread.
func (o *owner) concerned(kind node.EventKind, t *thread) bool {
	return slices.ContainsFunc(o.kinds[kind], func(w *watch) bool { return w.concerns(t) })
}

func ended(pid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
}
