//go:build linux && amd64

package linux

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/node"
)

// events owns the watches of the process and calls their handlers. It belongs to the owner's
// goroutine, except for calls.
type events struct {
	o        *owner
	watches  map[*watch]struct{}         // those that need tracing
	kinds    map[node.EventKind][]*watch // those without an address, in the order in which they were set
	watchful int                         // how many of them change how threads run
	hit      *hit                        // the next one to hand out
	calls    sync.Mutex                  // held while a handler runs, here or on the meeting's server
}

// watch is one Watch of the node.
type watch struct {
	node.Watch
	handle func(*node.Hit)
	number uint64         // numbers the watches in the order in which they were set
	inner  bool           // internal: its handler needs the thread stopped by ptrace
	over   bool           // it was removed; guarded by events.calls
	call   int            // EventSysCall…: the number of the watched call, -1 for all
	file   calls.FileKind // only such calls whose first argument refers to such a file

	library *libraryWatch // EventLibCall…
}

// setWatch begins a watch that needs tracing.
type setWatch struct{ w *watch }

func (c setWatch) do(o *owner) error {
	o.events.guard(c.w)
	err := o.events.watch(c.w)
	if err != nil {
		o.restIfIdle()
	}
	return err
}

// guard makes sure that a watch's handler is called by one goroutine at a time, and not after
// the watch was removed.
func (e *events) guard(w *watch) {
	handle := w.handle
	w.handle = func(h *node.Hit) {
		e.calls.Lock()
		defer e.calls.Unlock()
		if !w.over {
			handle(h)
		}
	}
}

func (e *events) watch(w *watch) error {
	if err := e.o.attach(); err != nil {
		return err
	}
	if w.Event == node.EventReachedAddr {
		return e.watchAddr(w)
	}
	if err := e.prepare(w); err != nil {
		return err
	}
	e.watches[w] = struct{}{}
	at, _ := slices.BinarySearchFunc(e.kinds[w.Event], w, func(a, b *watch) int { return int(a.number) - int(b.number) })
	e.kinds[w.Event] = slices.Insert(e.kinds[w.Event], at, w)
	e.changeGait(w.Event, 1)
	return nil
}

// prepare does what a kind of event requires.
func (e *events) prepare(w *watch) error {
	switch {
	case isStep(w.Event):
		return e.o.steps.prepareSteps()
	case isLibraryCall(w.Event):
		return e.o.library.watch(w)
	}
	return nil
}

// watchAddr begins to hold threads at an address, by a rendezvous if possible.
func (e *events) watchAddr(w *watch) error {
	if err := e.isReached(w); err != nil {
		return err
	}
	if e.o.meeting.meet(w) {
		e.watches[w] = struct{}{}
		return nil
	}
	b, err := e.o.space.plant(w.Addr)
	if err != nil {
		return err
	}
	b.watches = append(b.watches, w)
	e.watches[w] = struct{}{}
	return nil
}

// changeGait adapts how threads run (for example in steps) after a watch for an event was
// added (by is 1) or removed (-1).
func (e *events) changeGait(kind node.EventKind, by int) {
	if kind == node.EventProcTerminated {
		e.o.ending.watchesChanged()
	}
	if !isStep(kind) && !isSystemCall(kind) {
		return
	}
	e.watchful += by
	if e.o.ended {
		return
	}
	if by > 0 {
		e.o.meeting.giveWayEverywhere()
	}
	e.o.tracer.freeze(nil)
	e.o.tracer.thaw()
	e.o.steps.lookAhead()
	if e.o.steps.stepping && len(e.kinds[node.EventStepped])+len(e.kinds[node.EventSteppedOver]) == 0 {
		e.o.steps.endSteps()
	}
}

// endWatch takes a watch away.
type endWatch struct{ w *watch }

func (c endWatch) do(o *owner) error {
	defer o.restIfIdle()
	return o.events.unwatch(c.w)
}

func (e *events) unwatch(w *watch) error {
	if _, stands := e.watches[w]; !stands {
		return nil // it ended with the program
	}
	delete(e.watches, w)
	e.calls.Lock()
	w.over = true
	e.calls.Unlock()
	same := func(other *watch) bool { return other == w }
	if w.Event != node.EventReachedAddr {
		e.kinds[w.Event] = slices.DeleteFunc(e.kinds[w.Event], same)
		e.changeGait(w.Event, -1)
		if w.library != nil {
			e.o.library.unwatch(w)
		}
		return nil
	}
	b := e.o.space.breakpoints[w.Addr]
	if b == nil {
		return e.o.meeting.unmeet(w)
	}
	b.watches = slices.DeleteFunc(b.watches, same)
	if len(b.watches) > 0 {
		return nil
	}
	return e.o.space.uproot(b)
}

// concerns reports whether a watch includes a thread.
func (w *watch) concerns(t *thread) bool {
	return len(w.Threads) == 0 || slices.Contains(w.Threads, t.tid)
}

// concerned reports whether a watch for a kind of event includes a thread.
func (e *events) concerned(kind node.EventKind, t *thread) bool {
	return slices.ContainsFunc(e.kinds[kind], func(w *watch) bool { return w.concerns(t) })
}

func ended(pid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
}
