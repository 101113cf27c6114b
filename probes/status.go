package probes

import (
	"cmp"
	"context"

	"mirador/mir"
)

// Status describes a probe.
type Status struct {
	ID         string
	App        string
	State      State
	Region     string // as the request names it, "" without a region
	Unit       string // the name of the region's unit, once it is installed
	Metrics    []string
	Requests   []string        // its conditional requests
	Placements []mir.Placement // where these run
	Gone       bool            // all the processes that it measured have terminated
	Failure    string          // why it could not be installed
	Notice     string          // what became of it unasked
	Cost       *mir.Cost       // what it costs its processes; nil: not known
}

// Status returns the state of the probe.
func (p *Probe) Status() Status {
	p.mu.RLock()
	s := Status{ID: p.id, App: p.app.name, State: p.state}
	w, request := p.work, p.request
	s.Notice = p.notice
	if p.failure != nil {
		s.Failure = p.failure.Error()
	}
	p.mu.RUnlock()
	for _, m := range request.Metrics {
		s.Metrics = append(s.Metrics, m.Name)
	}
	if request.Region != nil {
		s.Region = cmp.Or(request.Region.From, request.Region.To)
	}
	if w == nil {
		return s
	}
	s.Unit = w.plan.Region
	s.Requests = w.plan.Conditional(w.handles)
	s.Gone = w.plan.Outlived(p.app.processes.gone())
	s.Cost = p.cost(w, request.Budget)
	p.placeAgain(w)
	if all := w.placements.Load(); all != nil {
		s.Placements = *all
	}
	return s
}

// document returns the probe document: the id and, in an answer with extensions of the gateway,
// also the placements and the cost.
func (p *Probe) document(extended bool) *mir.Probe {
	if !extended {
		return &mir.Probe{ID: p.id}
	}
	s := p.Status()
	d := &mir.Probe{ID: p.id, Placements: s.Placements, Notice: s.Notice}
	if s.Cost != nil && (s.Cost.Hits > 0 || s.Cost.Budget > 0) {
		d.Cost = s.Cost
	}
	return d
}

// Hits returns the number of executions of the probe's region, as far as its metrics record it;
// 0 without a region.
func (p *Probe) Hits(ctx context.Context) (int64, error) {
	w, vs, err := p.measure(ctx)
	if err != nil || !w.plan.OnRegion() {
		return 0, err
	}
	return w.plan.Executions(vs), nil
}
