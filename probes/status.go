package probes

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"mirador/mir"
	"mirador/mir/api"
)

// Status describes a probe.
type Status = api.Probe

// Status returns the state of the probe.
func (p *Probe) Status() Status {
	p.mu.RLock()
	s := Status{ID: p.id, App: p.app.name, State: p.state}
	w, request := p.work, p.request
	s.Notice = joined(p.notice, p.libraries.text())
	if p.failure != nil {
		s.Failure = p.failure.Error()
	}
	p.mu.RUnlock()
	if text, err := mir.Marshal(&request); err == nil {
		s.Request = strings.TrimSpace(string(text))
	}
	s.Label, s.Note, s.Owner = request.Label, request.Note, p.owner
	for _, m := range request.Metrics {
		s.Metrics = append(s.Metrics, m.Name)
	}
	if request.Region != nil {
		s.Region = cmp.Or(request.Region.From, request.Region.To)
	}
	if end := p.lease.end(); !end.IsZero() {
		s.Expires = &end
	}
	s.Deliveries = p.app.registry.queues.States(p.id)
	if w == nil {
		return s
	}
	s.Unit = w.plan.Region
	s.Requests = w.plan.Conditional(w.handles)
	s.Gone = w.plan.Outlived(p.app.processes.gone())
	s.Cost = p.cost(w, request.Budget)
	p.placeAgain(w)
	s.Notice = joined(w.plan.Besides, w.complete(s.Notice))
	if all := w.placements.Load(); all != nil {
		s.Placements = *all
	}
	return s
}

// joined joins two notices.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// complete adds to a notice that the values may lack something.
func (w *installed) complete(notice string) string {
	if g := w.gap.Load(); g != nil && g.until.UnixNano() > w.begun.Load() {
		notice = joined(notice, g.what)
	}
	at := w.missed.Load()
	if at <= w.begun.Load() {
		return notice
	}
	return joined(notice, fmt.Sprintf("something may be missing: at %s the probe took longer than a second to move to another placement, and its processes went on meanwhile",
		time.Unix(0, at).Format(time.RFC3339)))
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
	r, err := p.reading(ctx)
	if err != nil || !r.Plan.OnRegion() {
		return 0, err
	}
	return r.Plan.Executions(r.Values), nil
}
