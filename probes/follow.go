package probes

import (
	"context"
	"errors"
	"slices"

	"mirador/mir/translate"
	"mirador/omis"
)

// follow installs probes in processes that joined the application, if they measure all
// processes: those with symbols as entities, or with none (MIR 4, OMIS 5.5). It skips processes
// without the region. Other errors are logged, because the processes have joined anyway. The
// caller holds op.
func (a *App) follow(ctx context.Context, joined ...omis.Token) {
	defer a.weaving.appear(ctx, joined) // they have all that they measure then
	for _, p := range a.Probes() {
		_, w := p.now()
		if w == nil || !w.plan.Open() {
			continue
		}
		err := p.extend(ctx, w, joined)
		var missing translate.Errors
		if errors.As(err, &missing) && missing[0].Kind == NotFound {
			continue
		}
		if err != nil {
			a.registry.config.Log.Warn("cannot measure a process that joined", "probe", p.id, "app", a.name, "error", err)
		}
	}
}

// extend installs the probe in more processes, with the same counter and timer.
func (p *Probe) extend(ctx context.Context, w *installed, joined []omis.Token) error {
	t, err := p.app.weaving.targetsFor(ctx, p, joined)
	if err != nil {
		return err
	}
	more, err := translate.Instrument(&p.request, t)
	if err != nil {
		return err
	}
	return widen(ctx, p, w, more, more.Conditional(w.handles))
}

// widen adds the places of a plan for the same request to a probe. requests are those of the plan, the places first.
func widen(ctx context.Context, p *Probe, w *installed, more *translate.Plan, requests []string) error {
	defined, err := defineAll(ctx, p.app, requests)
	if err != nil {
		return errors.Join(err, p.app.tool.do(ctx, translate.Delete(defined)))
	}
	h := w.handles
	h.Requests = defined
	state, _ := p.now()
	if state == Active {
		if err := p.app.tool.do(ctx, more.Enable(h)); err != nil {
			return errors.Join(err, p.app.tool.do(ctx, translate.Delete(defined)))
		}
	}
	h.Requests = slices.Concat(w.handles.Requests, defined)
	alter(p, w, w.plan.Join(more), h, slices.Concat(w.at, placesOf(more, len(defined))))
	return nil
}

// alter replaces the plan and the requests of a probe, which keeps its objects and values.
func alter(p *Probe, w *installed, plan *translate.Plan, h translate.Handles, at []translate.Place) {
	other := newInstalled(plan, h, &p.request)
	other.samples, other.at, other.lost = w.samples, at, w.lost
	other.missed.Store(w.missed.Load())
	other.begun.Store(w.begun.Load())
	other.gap.Store(w.gap.Load())
	if w.recording != nil {
		other.recording = w.recording
		other.recording.follow(other.plan)
	}
	p.app.place(other)
	state, _ := p.now()
	p.swap(state, other, p.request)
}
