package probes

import (
	"context"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// values answers VALUE for some probes, in the order of the request.
func (a *App) values(ctx context.Context, ps []addressed) (*mir.Measured, error) {
	list := make([]*Probe, len(ps))
	for i, p := range ps {
		list[i] = p.Probe
	}
	all, failed := readings(ctx, a, list)
	var errs Errors
	for i, err := range failed {
		errs = append(errs, ps[i].blame(err)...)
	}
	if len(errs) > 0 {
		return nil, collected(errs)
	}
	return translate.Document(all), nil
}

// answerValue answers VALUE. If the request selects probes by labels, the answer names them.
func (a *App) answerValue(ctx context.Context, r *mir.ControlRequest, ps []addressed) (*mir.Measured, error) {
	m, err := a.values(ctx, ps)
	if err != nil {
		return nil, err
	}
	m.Named = slices.ContainsFunc(r.Probes, func(ref mir.ProbeRef) bool { return ref.ID == "" })
	return m, nil
}

// Value returns the present value of the probe as a measurement document.
func (p *Probe) Value(ctx context.Context) (*mir.Measured, error) {
	return p.app.values(ctx, []addressed{{Probe: p}})
}

// reading returns the present value of the probe with its plan.
func (p *Probe) reading(ctx context.Context) (translate.Reading, error) {
	all, errs := readings(ctx, p.app, []*Probe{p})
	return all[0], errs[0]
}

// readings returns the present values of some probes, or the errors in their places. It reads
// all of them by one request to the monitor.
func readings(ctx context.Context, a *App, list []*Probe) ([]translate.Reading, []error) {
	all, errs := make([]translate.Reading, len(list)), make([]error, len(list))
	var asked []int
	var reads []string
	works := make([]*installed, len(list))
	for i, p := range list {
		w, vs, ask, err := p.stored(ctx)
		if errs[i] = err; err != nil {
			continue
		}
		all[i], works[i] = translate.Reading{ProbeID: p.id, Plan: w.plan, Values: vs}, w
		if ask {
			asked, reads = append(asked, i), append(reads, w.read)
		}
	}
	replies, err := a.tool.read(ctx, reads)
	for n, i := range asked {
		if errs[i] = err; err == nil {
			all[i].Values, errs[i] = list[i].take(works[i], replies[n])
		}
	}
	return all, errs
}

// stored returns the values of a probe that are in the gateway: the samples of one that
// measures at fixed times, or the last values of an inactive one. ask means that the monitor
// has the values.
func (p *Probe) stored(ctx context.Context) (w *installed, vs []translate.Value, ask bool, err error) {
	state, w := p.now()
	switch state {
	case Defined:
		return nil, nil, false, failf(Conflict, "%s is not installed yet: it waits for a request with flush=\"true\"", p.id)
	case Woven:
		return nil, nil, false, failf(Conflict, "%s is woven into the source, and no process of application %s is built from it yet", p.id, p.app.name)
	case Failed:
		return nil, nil, false, p.broken()
	case Removed:
		return nil, nil, false, failf(NotFound, "%s has been removed", p.id)
	}
	if w.read == "" {
		return w, nil, false, nil // an event trace alone has no value
	}
	if w.samples != nil {
		if !translate.Scheduled(w.times) {
			if err := p.measureNow(ctx, w, state); err != nil {
				return nil, nil, false, err
			}
		}
		if vs := w.samples.values(); len(vs) > 0 {
			return w, vs, false, nil
		}
		return w, w.plan.Nothing(), false, nil
	}
	if !w.plan.OnRegion() && !w.plan.OnEvents() && state == Inactive {
		return w, w.lastValues(), false, nil
	}
	return w, nil, true, nil
}

// measureNow takes a measurement because its values are asked for, unless the probe is inactive.
func (p *Probe) measureNow(ctx context.Context, w *installed, state State) error {
	if state != Active && (!w.plan.OnEvents() || len(w.samples.values()) > 0) {
		return nil
	}
	vs, err := p.query(ctx, w)
	if err != nil {
		return err
	}
	w.samples.add(w.plan.AtInstant(vs, false))
	return p.keepSamples(w, false)
}

// take reads the values of a reply, and completes them with the last values of terminated
// processes.
func (p *Probe) take(w *installed, reply omis.Reply) ([]translate.Value, error) {
	vs, err := w.plan.Values(reply, w.handles)
	if err != nil {
		return nil, err
	}
	if gone := p.app.processes.gone(); len(gone) > 0 {
		vs = translate.Keep(w.lastValues(), vs)
	}
	w.last.Store(&vs)
	return vs, nil
}

// query reads the present values from the monitor.
func (p *Probe) query(ctx context.Context, w *installed) ([]translate.Value, error) {
	if w.read == "" {
		return nil, nil
	}
	reply, err := p.app.tool.request(ctx, w.read)
	if err != nil {
		return nil, err
	}
	return w.plan.Values(reply, w.handles)
}

// lastValues returns the values that were read last.
func (w *installed) lastValues() []translate.Value {
	if vs := w.last.Load(); vs != nil {
		return *vs
	}
	return w.plan.Nothing()
}

// broken returns the error of a probe that could not be installed.
func (p *Probe) broken() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return failf(Conflict, "%s could not be installed: %v; remove it", p.id, p.failure)
}
