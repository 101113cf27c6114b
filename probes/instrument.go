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

// instrument executes an instrumentation request (MIR 4).
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
	request, err := newKeyed(ctx, a, r)
	if err != nil {
		return nil, err
	}
	if request == nil || o.Explain {
		return a.create(ctx, r, o, nil)
	}
	return a.registry.keys.execute(r, request, func() (*mir.Probe, error) {
		doc, err := a.create(ctx, r, o, request)
		p, _ := doc.(*mir.Probe)
		return p, err
	})
}

// create creates a probe, or explains what would be done. request is not nil for a request with
// a key. The caller holds op.
func (a *App) create(ctx context.Context, r *mir.InstrRequest, o Options, request *keyed) (mir.Document, error) {
	full := *r
	full.Key = ""
	full.Measuring = suited(a.defaults, r)
	woven := a.weaving.has(&full)
	plan, err := a.weaving.planFor(ctx, &full, woven)
	if err != nil {
		return nil, err
	}
	if o.Explain && woven {
		return nil, failf(CannotBeDone, "a region that is woven into a source has no place in a program yet: explain the request on the program that is built from it")
	}
	if o.Explain {
		return a.explain(plan, r.Activated)
	}
	if err := a.registry.checkDestination(ctx, full.Measuring); err != nil {
		return nil, err
	}
	p := &Probe{app: a, request: unplaced(full), user: userOf(ctx), owner: callerOf(ctx).name, keyed: request, woven: woven, state: Defined, armed: r.Activated}
	if err := a.registry.enter(p); err != nil {
		a.registry.drop(p)
		return nil, err
	}
	p.touch()
	p.hold(full.Lease)
	a.mu.Lock()
	a.probes = append(a.probes, p)
	a.mu.Unlock()
	a.waiting = append(a.waiting, p)
	var earlier Errors
	if r.Flush {
		earlier, err = a.flush(ctx, p, plan)
		if err = errors.Join(err, a.forks.watch(ctx), a.loads.watch(ctx)); err != nil {
			return nil, errors.Join(err, a.writeDown())
		}
	}
	d := p.document(r.Extended())
	p.renew() // the flush, or measuring what probes cost, may have taken longer than the lease
	if r.Extended() && len(earlier) > 0 {
		d.Notice = earlier.Error()
	}
	return d, a.writeDown()
}

// unplaced returns a request without the positions of its elements, which would be wrong in
// errors about a later request.
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

// measuresNothing reports whether a request creates no probe, because it only sets defaults or
// flushes.
func measuresNothing(r *mir.InstrRequest) bool {
	return r.Region == nil && len(r.Metrics) == 0 && r.Events == 0 && len(r.Entities) == 0
}

// settings executes a request that creates no probe: it sets the defaults of later requests (MIR
// 4), or flushes earlier ones.
func (a *App) settings(ctx context.Context, r *mir.InstrRequest) error {
	if err := checkSettings(r); err != nil {
		return err
	}
	if r.Measuring != nil {
		if err := a.registry.checkDestination(ctx, r.Measuring); err != nil {
			return err
		}
		a.defaults = unplaced(mir.InstrRequest{Measuring: overlay(a.defaults, r.Measuring)}).Measuring
		if err := a.writeSelf(); err != nil {
			return err
		}
	}
	if r.Flush {
		earlier, _ := a.flush(ctx, nil, nil)
		return errors.Join(collected(earlier), a.forks.watch(ctx), a.loads.watch(ctx), a.writeDown())
	}
	return nil
}

func checkSettings(r *mir.InstrRequest) error {
	if r.Measuring == nil && !r.Flush {
		return failf(Invalid, "the instrreq asks for nothing: add a metric to measure, a measuring element to set defaults, or flush=\"true\"")
	}
	return collected(translate.CheckMeasuring(r.Measuring))
}

// plan translates a request for the present processes.
func (a *App) plan(ctx context.Context, r *mir.InstrRequest) (*translate.Plan, error) {
	if err := checkBudget(r); err != nil {
		return nil, err
	}
	// Most regions are named with their program. Reading the libraries of a program, which may
	// be much larger, would take most of the time of the first request.
	if program := translate.ProgramOf(r); program != "" {
		if t, err := a.targets(ctx, true, program); err == nil {
			if plan, err := translate.Instrument(r, t); err == nil {
				return plan, nil
			}
		}
	}
	t, err := a.targets(ctx, translate.InCode(r), "")
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

// replan translates the requests of waiting probes again, because the processes may have changed
// since the requests arrived.
func (a *App) replan(ctx context.Context, list []*Probe) (map[*Probe]*translate.Plan, map[*Probe]error) {
	plans, errs := make(map[*Probe]*translate.Plan), make(map[*Probe]error)
	if len(list) == 0 {
		return plans, errs
	}
	t, failed := a.targets(ctx, slices.ContainsFunc(list, func(p *Probe) bool { return translate.InCode(&p.request) }), "")
	for _, p := range list {
		if errs[p] = failed; failed == nil {
			if errs[p] = checkBudget(&p.request); errs[p] == nil {
				t.Branch = a.branches.finder(asUser(ctx, p))
				plans[p], errs[p] = translate.Instrument(&p.request, t)
			}
		}
	}
	return plans, errs
}

// flush installs the waiting probes in the order of their requests. newest is the probe of the
// flushing request, with its plan; nil if that request creates none. A probe that fails does not
// affect the others. err has the errors of newest, which is then removed, because an answer with
// errors cannot contain its id. earlier has the errors of the other probes, which remain as
// failed probes.
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
	before := slices.DeleteFunc(slices.Clone(a.waiting), func(p *Probe) bool { return p == newest || p.woven })
	var toWeave []*Probe
	plans, refused := a.replan(ctx, before)
	if newest != nil {
		plans[newest] = plan
	}
	for _, p := range slices.Clone(a.waiting) {
		if p.woven {
			toWeave = append(toWeave, p)
			continue
		}
		if err := a.settle(ctx, p, plans[p], refused[p]); err != nil {
			wrong(p, err)
			continue
		}
		settled = append(settled, p)
	}
	for p, err := range a.start(ctx, settled) {
		wrong(p, err)
	}
	if err := a.weaving.write(ctx, toWeave); err != nil {
		for _, p := range toWeave {
			p.fail(err)
			wrong(p, err)
		}
	}
	a.waiting = nil
	if len(own) > 0 {
		own = append(own, AsErrors(newest.remove(context.WithoutCancel(ctx)))...)
	}
	return earlier, collected(own)
}

// settle installs a waiting probe, unless its request was refused.
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
		a.place(w) // activate asks for the placements of an armed one
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.work = Inactive, w
	p.touch()
	return nil
}

// start activates the armed ones of some installed probes. It yields those that fail, of which
// nothing remains in the monitor.
func (a *App) start(ctx context.Context, list []*Probe) iter.Seq2[*Probe, error] {
	list = slices.DeleteFunc(list, func(p *Probe) bool { return !p.isArmed() })
	enabled := a.together(ctx, list, translate.Enable)
	return func(yield func(*Probe, error) bool) {
		for _, p := range list {
			_, w := p.now()
			err := p.activate(ctx, enabled)
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

// together sends one request about the conditional requests of several probes, which is much
// faster than one request for each. It returns false if any of them failed: the single probe's
// change, which comes next, reports the error again.
func (a *App) together(ctx context.Context, list []*Probe, request func([]omis.Token) string) (done bool) {
	if len(list) < 2 {
		return false
	}
	var requests []omis.Token
	for _, p := range list {
		_, w := p.now()
		requests = append(requests, w.handles.Requests...)
	}
	return a.tool.do(ctx, request(requests)) == nil
}

// fail records that a probe could not be installed.
func (p *Probe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.work, p.failure = Failed, nil, err
	p.touch()
}
