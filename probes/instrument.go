package probes

import (
	"context"
	"errors"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
)

// instrument carries out an instrumentation request (MIR 4).
func (a *App) instrument(ctx context.Context, r *mir.InstrRequest, o Options) (mir.Document, error) {
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return nil, err
	}
	switch {
	case measuresNothing(r) && o.Explain:
		return &mir.Explain{}, checkSettings(r)
	case measuresNothing(r):
		return nil, a.settings(ctx, r)
	}
	full := *r
	full.Measuring = suited(a.defaults, r)
	plan, err := a.plan(ctx, &full)
	if err != nil {
		return nil, err
	}
	if o.Explain {
		return a.explain(plan, r.Activated)
	}
	p := &Probe{app: a, request: full, state: Defined, armed: r.Activated, changed: true}
	if err := a.registry.enter(p); err != nil {
		a.registry.drop(p)
		return nil, err
	}
	a.mu.Lock()
	a.probes = append(a.probes, p)
	a.mu.Unlock()
	a.waiting = append(a.waiting, p)
	if r.Flush {
		if err := a.flush(ctx, p, plan); err != nil {
			return nil, errors.Join(err, a.writeDown())
		}
	}
	return p.document(), a.writeDown()
}

// measuresNothing tells the requests that get no probe: those that only set
// defaults or flush.
func measuresNothing(r *mir.InstrRequest) bool {
	return r.Region == nil && len(r.Metrics) == 0 && r.Events == 0 && len(r.Entities) == 0
}

// settings carries out a request without a probe: it sets the defaults of those
// to come (MIR 4), or flushes those before it.
func (a *App) settings(ctx context.Context, r *mir.InstrRequest) error {
	if err := checkSettings(r); err != nil {
		return err
	}
	if r.Measuring != nil {
		a.defaults = overlay(a.defaults, r.Measuring)
		if err := a.writeSelf(); err != nil {
			return err
		}
	}
	if r.Flush {
		return errors.Join(a.flush(ctx, nil, nil), a.writeDown())
	}
	return nil
}

func checkSettings(r *mir.InstrRequest) error {
	if r.Measuring == nil && !r.Flush {
		return failf(Invalid, "the instrreq asks for nothing: add a metric to measure, a measuring element to set defaults, or flush=\"true\"")
	}
	return collected(translate.CheckMeasuring(r.Measuring, false))
}

// plan translates a request against the application as it is now.
func (a *App) plan(ctx context.Context, r *mir.InstrRequest) (*translate.Plan, error) {
	if r.Budget > 0 && r.Region == nil {
		return nil, failf(CannotBeDone, "a budget is for a probe on a region: what is measured without one stands nowhere in the program, and takes none of its time")
	}
	t, err := a.targets(ctx, r.Region != nil)
	if err != nil {
		return nil, err
	}
	return translate.Instrument(r, t)
}

// flush installs the probes that wait, in the order of their requests. newest,
// if there is one, is that of the flushing request, with its plan. All of them
// are tried; if one fails, newest is not kept, since its id cannot be told along
// with the errors.
func (a *App) flush(ctx context.Context, newest *Probe, plan *translate.Plan) error {
	var errs Errors
	for _, p := range slices.Clone(a.waiting) {
		its := plan
		if p != newest {
			its = nil
		}
		if err := a.settle(ctx, p, its); err != nil {
			errs = append(errs, AsErrors(named(p, newest, err))...)
		}
	}
	a.waiting = nil
	if len(errs) > 0 && newest != nil {
		errs = append(errs, AsErrors(newest.remove(context.WithoutCancel(ctx)))...)
	}
	return collected(errs)
}

// named says which probe an error is about, unless it is the one of the request
// that is answered.
func named(p, newest *Probe, err error) error {
	if p == newest {
		return err
	}
	return failf(AsErrors(err)[0].Kind, "%s, asked for earlier: %v", p.id, err)
}

// settle installs a probe that waited, and activates it if that was asked for.
func (a *App) settle(ctx context.Context, p *Probe, plan *translate.Plan) (err error) {
	defer func() {
		if err != nil {
			p.fail(err)
		}
	}()
	if plan == nil { // planned again: the application may have changed
		if plan, err = a.plan(ctx, &p.request); err != nil {
			return err
		}
	}
	w, err := a.install(ctx, plan, p, &p.request)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.state, p.work, p.changed = Inactive, w, true
	armed := p.armed
	p.mu.Unlock()
	if !armed {
		return nil
	}
	if err := p.activate(ctx); err != nil {
		a.clear(ctx, plan, w.handles)
		return err
	}
	return nil
}

// fail marks a probe that could not be installed.
func (p *Probe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.work, p.failure, p.changed = Failed, nil, err, true
}
