//go:build linux && amd64

package linux

import (
	"slices"

	"mirador/omis"
)

// watch is one Watch of the node.
type watch struct {
	omis.Watch
	handle func(*omis.Hit)
	number uint64 // in the order they were set
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
	err := o.watch(c.w)
	if err != nil {
		o.restIfIdle()
	}
	c.give(err)
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
	if w.Event == omis.EventReachedAddr {
		b, err := o.plant(w.Addr)
		if err != nil {
			return err
		}
		b.watches = append(b.watches, w)
	}
	o.watches[w] = struct{}{}
	return nil
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
	b := o.space.breakpoints[w.Addr]
	if w.Event != omis.EventReachedAddr || b == nil {
		return nil
	}
	b.watches = slices.DeleteFunc(b.watches, func(other *watch) bool { return other == w })
	if len(b.watches) > 0 {
		return nil
	}
	return o.uproot(b)
}

// restIfIdle detaches at once when nothing stands any more, so that whoever took
// the last thing away finds the process untraced.
func (o *owner) restIfIdle() {
	if !o.needsTracing() {
		o.leave()
	}
}

// ordered lists the watches for a kind of event in the order they were set.
func (o *owner) ordered(kind omis.EventKind) []*watch {
	var ws []*watch
	for w := range o.watches {
		if w.Event == kind {
			ws = append(ws, w)
		}
	}
	slices.SortFunc(ws, func(a, b *watch) int { return int(a.number) - int(b.number) })
	return ws
}

func ended(pid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has ended", pid)
}
