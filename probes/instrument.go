package probes

import (
	"context"
	"errors"
	"iter"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
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
	p := &Probe{app: a, request: unplaced(full), state: Defined, armed: r.Activated}
	if err := a.registry.enter(p); err != nil {
		a.registry.drop(p)
		return nil, err
	}
	p.touch()
	a.mu.Lock()
	a.probes = append(a.probes, p)
	a.mu.Unlock()
	a.waiting = append(a.waiting, p)
	var earlier Errors
	if r.Flush {
		earlier, err = a.flush(ctx, p, plan)
		if err = errors.Join(err, a.watchForks(ctx)); err != nil {
			return nil, errors.Join(err, a.writeDown())
		}
	}
	d := p.document(r.Extended())
	if r.Extended() && len(earlier) > 0 {
		d.Notice = earlier.Error()
	}
	return d, a.writeDown()
}

// unplaced is a request without the places of its elements: they mean nothing in a later
// request that an error is about.
func unplaced(r mir.InstrRequest) mir.InstrRequest {
	r.Pos = mir.Position{}
	if r.Region != nil {
		region := *r.Region
		region.Pos = mir.Position{}
		r.Region = &region
	}
	if r.Measuring != nil {
		m := *r.Measuring
		m.Pos = mir.Position{}
		r.Measuring = &m
	}
	r.Metrics = slices.Clone(r.Metrics)
	for i := range r.Metrics {
		r.Metrics[i].Pos = mir.Position{}
	}
	r.Entities = unplacedEntities(r.Entities)
	return r
}

func unplacedEntities(es []mir.Entity) []mir.Entity {
	es = slices.Clone(es)
	for i := range es {
		es[i].Pos, es[i].Children = mir.Position{}, unplacedEntities(es[i].Children)
	}
	return es
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
		a.defaults = unplaced(mir.InstrRequest{Measuring: overlay(a.defaults, r.Measuring)}).Measuring
		if err := a.writeSelf(); err != nil {
			return err
		}
	}
	if r.Flush {
		earlier, _ := a.flush(ctx, nil, nil)
		return errors.Join(collected(earlier), a.watchForks(ctx), a.writeDown())
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
	if err := checkBudget(r); err != nil {
		return nil, err
	}
	t, err := a.targets(ctx, r.Region != nil)
	if err != nil {
		return nil, err
	}
	return translate.Instrument(r, t)
}

func checkBudget(r *mir.InstrRequest) error {
	if r.Budget > 0 && r.Region == nil {
		return failf(CannotBeDone, "a budget is for a probe on a region: what is measured without one stands nowhere in the program, and takes none of its time")
	}
	return nil
}

// replan plans probes that wait again, all against the application as it is now: it may
// have changed since they were asked for.
func (a *App) replan(ctx context.Context, list []*Probe) (map[*Probe]*translate.Plan, map[*Probe]error) {
	plans, errs := make(map[*Probe]*translate.Plan), make(map[*Probe]error)
	if len(list) == 0 {
		return plans, errs
	}
	t, failed := a.targets(ctx, slices.ContainsFunc(list, func(p *Probe) bool { return p.request.Region != nil }))
	for _, p := range list {
		if errs[p] = failed; failed == nil {
			if errs[p] = checkBudget(&p.request); errs[p] == nil {
				plans[p], errs[p] = translate.Instrument(&p.request, t)
			}
		}
	}
	return plans, errs
}

// flush installs the probes that wait, in the order of their requests. newest, if there is
// one, is that of the flushing request, with its plan. Each request stands for itself: all of
// them are tried, and err is about newest alone, which then is not kept, since its id cannot
// be told along with the errors. earlier says what is wrong with those before it; their probes
// are there and say so too.
func (a *App) flush(ctx context.Context, newest *Probe, plan *translate.Plan) (earlier Errors, err error) {
	var own Errors
	wrong := func(p *Probe, err error) {
		if p == newest {
			own = append(own, AsErrors(err)...)
			return
		}
		a.registry.config.Log.Warn("cannot install a probe that waited", "probe", p.id, "app", a.name, "error", err)
		earlier = append(earlier, failf(AsErrors(err)[0].Kind, "%s, asked for earlier: %v", p.id, err))
	}
	var settled []*Probe
	before := slices.DeleteFunc(slices.Clone(a.waiting), func(p *Probe) bool { return p == newest })
	plans, refused := a.replan(ctx, before)
	if newest != nil {
		plans[newest] = plan
	}
	for _, p := range slices.Clone(a.waiting) {
		if err := a.settle(ctx, p, plans[p], refused[p]); err != nil {
			wrong(p, err)
			continue
		}
		settled = append(settled, p)
	}
	for p, err := range a.start(ctx, settled) {
		wrong(p, err)
	}
	a.waiting = nil
	if len(own) > 0 {
		own = append(own, AsErrors(newest.remove(context.WithoutCancel(ctx)))...)
	}
	return earlier, collected(own)
}

// settle installs a probe that waited, unless it could not be planned.
func (a *App) settle(ctx context.Context, p *Probe, plan *translate.Plan, refused error) (err error) {
	defer func() {
		if err != nil {
			p.fail(err)
		}
	}()
	if refused != nil {
		return refused
	}
	w, err := a.install(ctx, plan, p, &p.request)
	if err != nil {
		return err
	}
	if !p.isArmed() {
		a.place(w) // else that is asked when it is activated
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.work = Inactive, w
	p.touch()
	return nil
}

// start activates those of installed probes for which that was asked for. It tells which
// ones failed, and of those nothing is left.
func (a *App) start(ctx context.Context, list []*Probe) iter.Seq2[*Probe, error] {
	list = slices.DeleteFunc(list, func(p *Probe) bool { return !p.isArmed() })
	a.enableAtOnce(ctx, list)
	return func(yield func(*Probe, error) bool) {
		for _, p := range list {
			_, w := p.now()
			err := p.activate(ctx)
			if err == nil {
				continue
			}
			p.fail(err)
			a.clear(ctx, w.plan, w.handles)
			if !yield(p, err) {
				return
			}
		}
	}
}

// enableAtOnce enables the requests of many probes, which takes much less time than one
// after the other. What is wrong with one of them it says again when it is activated.
func (a *App) enableAtOnce(ctx context.Context, list []*Probe) {
	if len(list) < 2 {
		return
	}
	var requests []omis.Token
	for _, p := range list {
		_, w := p.now()
		requests = append(requests, w.handles.Requests...)
	}
	_ = a.do(ctx, translate.Enable(requests))
}

// disableAtOnce has the monitor disable the requests of active probes, which takes much less
// time than one after the other. Those that it fails for are told when each is deactivated.
func (a *App) disableAtOnce(ctx context.Context, list []*Probe) {
	if len(list) < 2 {
		return
	}
	var requests []omis.Token
	for _, p := range list {
		_, w := p.now()
		requests = append(requests, w.handles.Requests...)
	}
	_ = a.do(ctx, translate.Disable(requests))
}

// fail marks a probe that could not be installed.
func (p *Probe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.work, p.failure = Failed, nil, err
	p.touch()
}
