package probes

import "context"

// Status describes a probe.
type Status struct {
	ID         string
	App        string
	State      State
	Region     string // the unit's name, "" without a region
	Metrics    []string
	Requests   []string // its conditional requests
	Placements []Placement
	Gone       bool   // all the processes that it measured have terminated
	Failure    string // why it could not be installed
}

// Status is what the probe is doing; it asks the monitor nothing.
func (p *Probe) Status() Status {
	p.mu.RLock()
	s := Status{ID: p.id, App: p.app.name, State: p.state}
	w := p.work
	if p.failure != nil {
		s.Failure = p.failure.Error()
	}
	p.mu.RUnlock()
	if w == nil {
		return s
	}
	s.Region = w.plan.Region
	for _, m := range w.plan.Metrics {
		s.Metrics = append(s.Metrics, m.Name)
	}
	s.Requests = w.plan.Conditional(w.handles)
	s.Placements = place(s.Requests)
	s.Gone = w.plan.Outlived(p.app.gone())
	return s
}

// Hits is how often the probe's region was executed, as far as its metrics tell;
// 0 without a region.
func (p *Probe) Hits(ctx context.Context) (int64, error) {
	w, vs, err := p.measure(ctx)
	if err != nil || !w.plan.OnRegion() {
		return 0, err
	}
	return w.plan.Executions(vs), nil
}
