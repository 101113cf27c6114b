package probes

import (
	"context"
	"errors"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// appear installs the woven probes of which some processes have the regions. It logs errors: the processes have
// joined anyway.
func (w *weaving) appear(ctx context.Context, joined []omis.Token) {
	a := w.app
	for _, p := range a.Probes() {
		if state, _ := p.now(); state != Woven {
			continue
		}
		plan, err := w.plan(ctx, &p.request, joined)
		if isAbsent(err) {
			continue
		}
		if err = a.settle(ctx, p, plan, err); err == nil {
			for _, failed := range a.start(ctx, []*Probe{p}) {
				err = failed
			}
		}
		if err != nil {
			a.registry.config.Log.Warn("cannot measure a woven region", "probe", p.id, "app", a.name, "error", err)
		}
	}
	if err := a.loads.watch(ctx); err != nil {
		a.registry.config.Log.Warn("cannot watch for libraries with woven regions", "app", a.name, "error", err)
	}
}

// isAbsent reports whether an error says that a process has no code of a woven region.
func isAbsent(err error) bool {
	if missing := (translate.Errors)(nil); errors.As(err, &missing) {
		return missing[0].Kind == NotFound
	}
	one := (*Error)(nil)
	return errors.As(err, &one) && (one.Kind == NotFound || one.Kind == Conflict)
}

// plan translates a request for the modules of processes that are built from woven sources.
func (w *weaving) plan(ctx context.Context, r *mir.InstrRequest, joined []omis.Token) (*translate.Plan, error) {
	t, err := w.targets(ctx, joined)
	if err != nil {
		return nil, err
	}
	return translate.Instrument(r, t)
}

// targets returns those of some processes that are built from the woven sources of the application, with the
// modules that are.
func (w *weaving) targets(ctx context.Context, joined []omis.Token) (*translate.Targets, error) {
	t, err := w.app.targets(ctx, true, "")
	if err != nil {
		return nil, err
	}
	t.Processes = slices.DeleteFunc(t.Processes, func(p translate.Process) bool { return !slices.Contains(joined, p.Token) })
	for i := range t.Processes {
		p := &t.Processes[i]
		p.Modules = slices.DeleteFunc(slices.Clone(p.Modules), func(m translate.Module) bool { return m.Units == nil || m.Units.Weaving() != w.id })
	}
	t.Processes = slices.DeleteFunc(t.Processes, func(p translate.Process) bool { return len(p.Modules) == 0 })
	if len(t.Processes) == 0 {
		return nil, failf(NotFound, "no process of application %s is built from its woven sources", w.app.name)
	}
	return t, nil
}

// known returns the id, for a caller without op.
func (w *weaving) known() string {
	w.app.mu.RLock()
	defer w.app.mu.RUnlock()
	return w.id
}

// planFor translates a request, or checks a request on regions that are woven into sources: there is no plan yet.
func (w *weaving) planFor(ctx context.Context, r *mir.InstrRequest, woven bool) (*translate.Plan, error) {
	if woven {
		return nil, w.check(ctx, r)
	}
	return w.app.plan(ctx, r)
}

// planAgain translates another definition of a probe.
func (w *weaving) planAgain(ctx context.Context, p *Probe, r *mir.InstrRequest) (*translate.Plan, error) {
	if _, work := p.now(); p.woven && work != nil {
		return w.plan(ctx, r, w.app.processes.living())
	}
	return w.planFor(ctx, r, p.woven)
}

// planRestored translates the request of a probe that was installed.
func (w *weaving) planRestored(ctx context.Context, p *Probe) (*translate.Plan, error) {
	if p.woven {
		return w.plan(ctx, &p.request, w.app.processes.living())
	}
	return w.app.plan(asUser(ctx, p), &p.request)
}

// targetsFor returns processes that joined the application, as a probe measures them.
func (w *weaving) targetsFor(ctx context.Context, p *Probe, joined []omis.Token) (*translate.Targets, error) {
	if p.woven {
		return w.targets(ctx, joined)
	}
	t, err := w.app.targets(asUser(ctx, p), translate.InCode(&p.request), "")
	if err == nil {
		t.Processes = slices.DeleteFunc(t.Processes, func(q translate.Process) bool { return !slices.Contains(joined, q.Token) })
	}
	return t, err
}
