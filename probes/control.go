package probes

import (
	"context"
	"errors"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
)

// control executes a control request (MIR 5). VALUE does not wait for changes. The other actions
// are changes that happen at once; they install waiting probes only with flush="true".
func (a *App) control(ctx context.Context, r *mir.ControlRequest, o Options) (mir.Document, error) {
	found, err := a.find(r.Probes)
	if err != nil {
		return nil, err
	}
	if err := consistent(r); err != nil {
		return nil, err
	}
	renew(found)
	switch {
	case o.Explain:
		return explainControl(ctx, a, r, found)
	case r.Action == mir.Value && !r.Flush:
		return measurement(a.answerValue(ctx, r, found))
	}
	a.op.Lock()
	defer a.op.Unlock()
	if found, err = a.find(r.Probes); err != nil { // again: until now another request could change them
		return nil, err
	}
	defer func() { renew(found) }() // it may take longer than a lease
	if r.Flush {
		a.flush(ctx, nil, nil) // errors of this request's probes are reported below
		if err := a.writeDown(); err != nil {
			return nil, err
		}
	}
	if r.Action == mir.Value {
		return measurement(a.answerValue(ctx, r, found))
	}
	done, err := a.act(ctx, r, found)
	if err := errors.Join(err, a.forks.watch(ctx), a.loads.watch(ctx), a.writeDown()); err != nil {
		return nil, err
	}
	return done, nil
}

func renew(probes []addressed) {
	for _, p := range probes {
		p.renew()
	}
}

// consistent refuses a new definition together with VALUE, which changes nothing, or REMOVE.
func consistent(r *mir.ControlRequest) error {
	if !redefines(r) || r.Action != mir.Value && r.Action != mir.Remove {
		return nil
	}
	return failf(Invalid, "%s does not change what a probe measures: leave metric, measuring, entities, budget and lease out, or use ACTIVATE, DEACTIVATE or RESET", r.Action)
}

// redefines reports whether a control request changes the definition of probes.
func redefines(r *mir.ControlRequest) bool {
	return len(r.Metrics) > 0 || r.Measuring != nil || len(r.Entities) > 0 || r.Budget > 0 || r.Lease > 0
}

// act changes probes. It removes, activates or deactivates all of them in the monitor at once,
// and makes other changes one after the other. It continues after an error, and the errors name
// the probes that failed.
func (a *App) act(ctx context.Context, r *mir.ControlRequest, found []addressed) (mir.Document, error) {
	var errs Errors
	if r.Action == mir.Remove {
		list := make([]*Probe, len(found))
		for i, p := range found {
			list[i] = p.Probe
		}
		for i, err := range a.removeAll(ctx, list) {
			errs = append(errs, found[i].blame(err)...)
		}
	} else {
		switch {
		case redefines(r):
		case r.Action == mir.Activate:
			a.together(ctx, inState(found, Inactive), translate.Enable)
		case r.Action == mir.Deactivate:
			a.together(ctx, inState(found, Active), translate.Disable)
		}
		for _, p := range found {
			errs = append(errs, p.blame(p.obey(ctx, r))...)
		}
	}
	if len(errs) > 0 {
		return nil, collected(errs)
	}
	return acknowledgement(found, r.Extended()), nil
}

// inState returns the probes that are in a state.
func inState(ps []addressed, which State) []*Probe {
	var list []*Probe
	for _, p := range ps {
		if state, _ := p.now(); state == which {
			list = append(list, p.Probe)
		}
	}
	return list
}

// acknowledgement returns the probe document; for several probes, a measurement document with
// only their ids.
func acknowledgement(ps []addressed, extended bool) mir.Document {
	if len(ps) == 1 {
		return ps[0].document(extended)
	}
	m := &mir.Measurement{}
	for _, p := range ps {
		m.Children = append(m.Children, mir.Measurement{ProbeID: p.id})
	}
	return m
}

// obey executes a control request on one probe.
func (p *Probe) obey(ctx context.Context, r *mir.ControlRequest) error {
	if state, _ := p.now(); state == Failed {
		return p.broken()
	}
	if redefines(r) {
		if err := p.redefine(ctx, r); err != nil {
			return err
		}
	}
	switch r.Action {
	case mir.Activate:
		p.arm(true)
		return p.activate(ctx, false)
	case mir.Deactivate:
		p.arm(false)
		return p.deactivate(ctx)
	}
	return p.reset(ctx)
}

// redefine changes what a probe measures, except for what the request omits (MIR 5). After a
// change of only statistics or times the probe keeps its values. With other metrics or entities
// it starts anew under the same id.
func (p *Probe) redefine(ctx context.Context, r *mir.ControlRequest) error {
	next := p.redefined(r)
	if r.Lease > 0 {
		p.hold(r.Lease)
	}
	state, old := p.now()
	then := state
	if r.Action == mir.Deactivate && state == Active {
		then = Inactive // it is not measured once more before that
	}
	plan, err := p.app.weaving.planAgain(ctx, p, &next)
	if err != nil {
		return err
	}
	if r.Measuring != nil {
		if err := p.app.registry.checkDestination(ctx, r.Measuring); err != nil {
			return err
		}
		p.mu.Lock()
		p.user = userOf(ctx)
		p.mu.Unlock()
	}
	switch {
	case state == Defined, state == Woven:
		p.swap(state, nil, unplaced(next))
		return nil
	case keepsValues(r, plan, old):
		w := newInstalled(old.plan.With(next.Measuring), old.handles, &next)
		w.at = old.at
		w.placements.Store(old.placements.Load())
		if w.samples != nil && old.samples != nil {
			w.samples = old.samples
		}
		w.recording = old.recording
		p.swap(then, w, unplaced(next))
		return nil
	}
	w, err := p.app.install(ctx, plan, p, &next)
	if err != nil {
		return err
	}
	if state == Active {
		if err := p.app.tool.do(ctx, w.plan.Enable(w.handles)); err != nil {
			p.app.clear(ctx, w.plan, w.handles)
			return err
		}
	}
	p.app.place(w)
	p.meter.begin(p.spent(w))
	p.swap(then, w, unplaced(next))
	// The journal comes before the removal: after a SIGKILL it names one of the two definitions.
	return errors.Join(p.writeDown(), p.keepSamples(w, true), p.app.tool.do(ctx, old.plan.Remove(old.handles)))
}

// redefined returns the request of a probe with what a control request changes.
func (p *Probe) redefined(r *mir.ControlRequest) mir.InstrRequest {
	next := p.request
	next.Measuring = overlay(p.request.Measuring, r.Measuring)
	if len(r.Metrics) > 0 {
		next.Metrics = slices.Clone(r.Metrics)
	}
	if len(r.Entities) > 0 {
		next.Entities = r.Entities
	}
	if r.Budget > 0 {
		next.Budget = r.Budget
	}
	if r.Lease > 0 {
		next.Lease = r.Lease
	}
	return next
}

// keepsValues reports whether a change leaves what the monitor measures as it is.
func keepsValues(r *mir.ControlRequest, plan *translate.Plan, old *installed) bool {
	return len(r.Metrics) == 0 && len(r.Entities) == 0 && plan.Recorded == old.plan.Recorded
}

// swap replaces the definition. The state is that of the probe then.
func (p *Probe) swap(state State, w *installed, next mir.InstrRequest) {
	p.stopSchedule()
	p.mu.Lock()
	p.request, p.work = next, w
	p.touch()
	p.mu.Unlock()
	if state == Active {
		p.startSchedule(w)
	}
}

// measurement returns a measurement document as a mir.Document, so that a nil pointer does not
// become a document that is not nil.
func measurement(m *mir.Measured, err error) (mir.Document, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
