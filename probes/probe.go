package probes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mirador/mir"
	"mirador/mir/api"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/probes/deliver"
)

// The states of a probe.
const (
	Defined  = api.Defined
	Woven    = api.Woven
	Inactive = api.Inactive
	Active   = api.Active
	Failed   = api.Failed
	Removed  = api.Removed
)

// State is the state of a probe in its life cycle.
type State = api.State

// Probe is a probe (MIR 4), created by an instrumentation request.
type Probe struct {
	id     string
	number int
	owner  string // who requested it
	keyed  *keyed // its request, if that has a key
	woven  bool   // its regions are woven into sources
	app    *App

	// mu guards the fields that a change replaces. It is not held during a request to the
	// monitor. Changes also hold the application's op, so they may read without mu.
	mu          sync.RWMutex
	request     mir.InstrRequest // the last definition, with defaults filled in
	state       State
	armed       bool // activate it when it is flushed
	work        *installed
	made        int  // number of installations
	changed     bool // since it was written to the journal; see touch
	failure     error
	notice      string       // what the gateway did without a request
	user        deliver.User // of the last definition
	destination *directed    // nil: none outside the gateway
	schedule    *schedule    // nil unless active and sampling, delivering or on a budget

	libraries libraryNotices
	tracers   tracers // readers of its event trace
	meter     meter
	lease     lease
	outlet    deliver.Outlet
}

// installed is a plan with the objects of the monitor that execute it. It is immutable; a new
// definition of the probe gets another one.
type installed struct {
	plan       *translate.Plan
	handles    translate.Handles
	at         []translate.Place // of each request of the handles; zero if the request is not at a place of the plan
	read       string            // the request for the values
	times      *mir.Measuring    // when to measure and to deliver
	budget     float64           // greatest share of the processes' time; 0: any
	samples    *samples          // nil unless the probe measures at fixed times
	recording  *recording        // nil unless the plan keeps records
	lost       time.Time         // when values in the memory of a killed gateway were lost; zero if none were
	last       atomic.Pointer[[]translate.Value]
	placements atomic.Pointer[[]omis.Placement] // of its conditional requests
	placedAt   atomic.Int64                     // time of placements, in Unix nanoseconds
	missed     atomic.Int64                     // when a request may have missed events, in Unix nanoseconds; 0: never
	gap        atomic.Pointer[gap]              // executions that may not have been measured; nil: none
	begun      atomic.Int64                     // when the values were discarded, in Unix nanoseconds; 0: never
}

// ID returns the identifier of the probe.
func (p *Probe) ID() string { return p.id }

// App returns the application that the probe belongs to.
func (p *Probe) App() *App { return p.app }

// now returns the state of the probe and its installation.
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

// arm records whether to activate a waiting probe when it is flushed.
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

// activate starts the measuring. It does nothing to an active probe (MIR 5). The caller holds
// op, as for all methods that change a probe. enabled means that together has enabled its requests.
func (p *Probe) activate(ctx context.Context, enabled bool) error {
	state, w := p.now()
	if state != Inactive {
		return nil
	}
	p.mu.Lock()
	p.notice = ""
	p.mu.Unlock()
	p.meter.begin(p.spent(w))
	if !enabled {
		if err := p.app.tool.do(ctx, w.plan.Enable(w.handles)); err != nil {
			return err
		}
	}
	p.app.place(w)
	p.change(Active)
	p.startSchedule(w)
	return nil
}

// deactivate suspends the measuring.
func (p *Probe) deactivate(ctx context.Context) error {
	state, w := p.now()
	if state != Active {
		return nil
	}
	p.stopSchedule()
	if err := p.app.tool.do(ctx, w.plan.Disable(w.handles)); err != nil {
		return err
	}
	p.drain(ctx, w)
	p.meter.end(p.spent(w))
	p.change(Inactive)
	return nil
}

// reset discards the values.
func (p *Probe) reset(ctx context.Context) error {
	_, w := p.now()
	if w == nil {
		return nil
	}
	if err := p.app.tool.do(ctx, w.plan.Reset(w.handles)); err != nil {
		return err
	}
	w.begun.Store(time.Now().UnixNano())
	w.recording.reset(w.plan)
	w.last.Store(nil)
	if w.samples != nil {
		w.samples.reset()
	}
	return p.keepSamples(w, true)
}

// remove removes the probe, even if the monitor reports an error.
func (p *Probe) remove(ctx context.Context) error { return p.app.removeAll(ctx, []*Probe{p})[0] }

// dismiss removes the probe, except from the application's lists and from the monitor, and
// returns the installation to remove there. It erases the journal's record first: the next
// gateway removes objects of the monitor that no record names.
func (p *Probe) dismiss() (left *installed, err error) {
	err = p.app.registry.erase(probePrefix + p.id)
	p.lease.stop()
	p.stopSchedule()
	err = errors.Join(err, p.app.registry.erase(samplesPrefix+p.id))
	p.mu.Lock()
	left, p.state, p.work, p.changed = p.work, Removed, nil, false
	p.mu.Unlock()
	p.outlet.Close()
	p.tracers.end()
	p.app.registry.drop(p)
	return left, err
}

// removeAll removes probes together, which is much faster than one after the other. It returns
// the error of each.
func (a *App) removeAll(ctx context.Context, list []*Probe) []error {
	if len(list) == 0 {
		return nil
	}
	var requests []omis.Token
	a.strike(list)
	lefts, errs := make([]*installed, len(list)), make([]error, len(list))
	for i, p := range list {
		p.last(ctx)
		if lefts[i], errs[i] = p.dismiss(); lefts[i] != nil {
			requests = append(requests, lefts[i].handles.Requests...)
		}
	}
	if len(list) > 1 {
		errs[0] = errors.Join(errs[0], a.tool.do(ctx, translate.Delete(requests)))
	}
	for i, w := range lefts {
		if w == nil {
			continue
		}
		h := w.handles
		if len(list) > 1 {
			h.Requests = nil
		}
		errs[i] = errors.Join(errs[i], a.tool.do(ctx, w.plan.Remove(h)))
	}
	return errs
}
