package probes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// State is where a probe is in its life.
type State string

const (
	Defined  State = "defined" // waits for a request that flushes
	Inactive State = "inactive"
	Active   State = "active"
	Failed   State = "failed" // could not be installed when it was flushed
	Removed  State = "removed"
)

// Probe is a probe of MIR 4: what an instrumentation request made.
type Probe struct {
	id     string
	number int
	app    *App

	// mu guards what a change replaces. It is not held while the monitor is
	// asked. Changes hold the application's op as well, so that they may read
	// without it.
	mu       sync.RWMutex
	request  mir.InstrRequest // the last defining request, its defaults filled in
	state    State
	armed    bool // to be activated when it is flushed
	work     *installed
	made     int  // how often it was installed
	changed  bool // since it was written into the journal; see touch
	failure  error
	notice   string    // what became of it unasked
	delivery *delivery // nil unless active and sampling, delivering or on a budget

	meter    meter
	audience audience
}

// installed is a plan with what stands for it in the monitor. It does not
// change; a probe that is defined anew gets another.
type installed struct {
	plan       *translate.Plan
	handles    translate.Handles
	read       string         // the request for the values
	times      *mir.Measuring // how often to measure and to deliver
	budget     float64        // the share of the processes' time that it may take; 0: any
	samples    *samples       // of a probe that measures by the clock, else nil
	last       atomic.Pointer[[]translate.Value]
	placements atomic.Pointer[[]mir.Placement] // where its conditional requests run
	placedAt   atomic.Int64                    // when that was asked last, in Unix nanoseconds
}

// ID is the probe's identifier.
func (p *Probe) ID() string { return p.id }

// App is the application that the probe belongs to.
func (p *Probe) App() *App { return p.app }

// now is the probe's state and what is installed for it.
func (p *Probe) now() (State, *installed) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state, p.work
}

// change sets the state.
func (p *Probe) change(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	p.touch()
}

// arm remembers whether to activate a probe that waits.
func (p *Probe) arm(active bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = active
	p.touch()
}

func (p *Probe) isArmed() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.armed
}

// activate starts the measuring; an active probe stays as it is (MIR 5). op is
// held, here and in all that changes a probe.
func (p *Probe) activate(ctx context.Context) error {
	state, w := p.now()
	if state != Inactive {
		return nil
	}
	p.mu.Lock()
	p.notice = ""
	p.mu.Unlock()
	p.meter.begin(p.spent(w))
	if err := p.app.do(ctx, w.plan.Enable(w.handles)); err != nil {
		return err
	}
	p.app.place(w)
	p.change(Active)
	p.deliver(w)
	return nil
}

// deactivate stops the measuring.
func (p *Probe) deactivate(ctx context.Context) error {
	state, w := p.now()
	if state != Active {
		return nil
	}
	p.undeliver()
	if err := p.app.do(ctx, w.plan.Disable(w.handles)); err != nil {
		return err
	}
	p.meter.end(p.spent(w))
	p.change(Inactive)
	return nil
}

// reset forgets what was measured.
func (p *Probe) reset(ctx context.Context) error {
	_, w := p.now()
	if w == nil {
		return nil
	}
	if err := p.app.do(ctx, w.plan.Reset(w.handles)); err != nil {
		return err
	}
	w.last.Store(nil)
	if w.samples != nil {
		w.samples.reset()
	}
	return p.keepSamples(w, true)
}

// remove takes the probe away. It is gone also where the monitor could not be told.
func (p *Probe) remove(ctx context.Context) error { return p.app.removeAll(ctx, []*Probe{p})[0] }

// dismiss does all that removes a probe but for taking it off the application's lists and
// telling the monitor, and returns what is left there.
// The journal forgets the probe first: what then is left of it is nobody's.
func (p *Probe) dismiss() (left *installed, err error) {
	err = p.app.registry.erase(probePrefix + p.id)
	p.undeliver()
	err = errors.Join(err, p.app.registry.erase(samplesPrefix+p.id))
	p.mu.Lock()
	left, p.state, p.work, p.changed = p.work, Removed, nil, false
	p.mu.Unlock()
	p.audience.close()
	p.app.registry.drop(p)
	return left, err
}

// removeAll takes probes away, which takes much less time than one after the other. Of
// each it tells what went wrong.
func (a *App) removeAll(ctx context.Context, list []*Probe) []error {
	if len(list) == 0 {
		return nil
	}
	var requests []omis.Token
	a.strike(list)
	lefts, errs := make([]*installed, len(list)), make([]error, len(list))
	for i, p := range list {
		if lefts[i], errs[i] = p.dismiss(); lefts[i] != nil {
			requests = append(requests, lefts[i].handles.Requests...)
		}
	}
	if len(list) > 1 {
		errs[0] = errors.Join(errs[0], a.do(ctx, translate.Delete(requests)))
	}
	for i, w := range lefts {
		if w == nil {
			continue
		}
		h := w.handles
		if len(list) > 1 {
			h.Requests = nil
		}
		errs[i] = errors.Join(errs[i], a.do(ctx, w.plan.Remove(h)))
	}
	return errs
}
