package probes

import (
	"context"

	"mirador/mir"
	"mirador/mir/translate"
)

// values answers VALUE for some probes, in the order of the request.
func (a *App) values(ctx context.Context, ps []addressed) (*mir.Measured, error) {
	var all []translate.Reading
	var errs Errors
	for _, p := range ps {
		r, err := p.reading(ctx)
		if err != nil {
			errs = append(errs, p.blame(err)...)
			continue
		}
		all = append(all, r)
	}
	if len(errs) > 0 {
		return nil, collected(errs)
	}
	return translate.Document(all), nil
}

// Value returns the present value of the probe as a measurement document.
func (p *Probe) Value(ctx context.Context) (*mir.Measured, error) {
	return p.app.values(ctx, []addressed{{Probe: p}})
}

// reading returns the present value of the probe with its plan.
func (p *Probe) reading(ctx context.Context) (translate.Reading, error) {
	w, vs, err := p.measure(ctx)
	if err != nil {
		return translate.Reading{}, err
	}
	return translate.Reading{ProbeID: p.id, Plan: w.plan, Values: vs}, nil
}

// measure returns the values of the probe: the samples of one that measures at fixed times,
// otherwise the answer of the monitor to one request.
func (p *Probe) measure(ctx context.Context) (*installed, []translate.Value, error) {
	state, w := p.now()
	switch state {
	case Defined:
		return nil, nil, failf(Conflict, "%s is not installed yet: it waits for a request with flush=\"true\"", p.id)
	case Failed:
		return nil, nil, p.broken()
	case Removed:
		return nil, nil, failf(NotFound, "%s has been removed", p.id)
	}
	if w.samples != nil {
		if !translate.Scheduled(w.times) {
			if err := p.measureNow(ctx, w, state); err != nil {
				return nil, nil, err
			}
		}
		if vs := w.samples.values(); len(vs) > 0 {
			return w, vs, nil
		}
		return w, w.plan.Nothing(), nil
	}
	if !w.plan.OnRegion() && !w.plan.OnEvents() && state == Inactive {
		return w, w.lastValues(), nil
	}
	vs, err := p.ask(ctx, w)
	return w, vs, err
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

// ask reads the values from the monitor, and completes them with the last values of terminated
// processes.
func (p *Probe) ask(ctx context.Context, w *installed) ([]translate.Value, error) {
	vs, err := p.query(ctx, w)
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
