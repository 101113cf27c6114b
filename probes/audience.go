package probes

import (
	"slices"
	"sync"

	"mirador/mir"
)

// backlog is how many documents wait for a slow listener; newer ones are
// dropped for it.
const backlog = 16

// audience is those who listen to a probe. The zero value is ready.
type audience struct {
	mu     sync.Mutex
	all    []chan *mir.Measurement
	closed bool
}

// Subscribe returns the measurement documents that a probe delivers, until
// cancel is called or the probe is removed; then the channel is closed. A
// document that finds the channel full is dropped: a listener cannot hold a
// probe up.
func (r *Registry) Subscribe(id string) (documents <-chan *mir.Measurement, cancel func(), err error) {
	p, err := r.Probe(id)
	if err != nil {
		return nil, nil, err
	}
	if _, w := p.now(); w != nil && pace(w.times) == 0 {
		return nil, nil, failf(Conflict, "%s delivers nothing by itself: give it a <measuring delivery=\"1000\"/> (milliseconds), by a ctrlreq with ACTIVATE for instance", id)
	}
	c := make(chan *mir.Measurement, backlog)
	if !p.audience.join(c) {
		return nil, nil, failf(NotFound, "%s has been removed", id)
	}
	// Asked after joining: whoever joins later than the streams were ended has to be told.
	if _, w := p.now(); w != nil && w.plan.Outlived(p.app.gone()) {
		p.audience.leave(c)
		return nil, nil, failf(Conflict, "all processes that %s measured have terminated: it delivers nothing any more; VALUE answers what it has measured", id)
	}
	return c, func() { p.audience.leave(c) }, nil
}

func (a *audience) join(c chan *mir.Measurement) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.all = append(a.all, c)
	return true
}

func (a *audience) leave(c chan *mir.Measurement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.all, c); i >= 0 {
		a.all = slices.Delete(a.all, i, i+1)
		close(c)
	}
}

func (a *audience) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all) == 0
}

func (a *audience) send(m *mir.Measurement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.all {
		select {
		case c <- m:
		default:
		}
	}
}

// dismiss ends the streams that there are.
func (a *audience) dismiss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.all {
		close(c)
	}
	a.all = nil
}

func (a *audience) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.all {
		close(c)
	}
	a.all, a.closed = nil, true
}
