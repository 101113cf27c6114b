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
	h := w.handles
	h.Requests = nil
	for _, request := range more.Conditional(h) {
		csr, err := p.app.watch(ctx, request)
		if err != nil {
			return err
		}
		h.Requests = append(h.Requests, csr)
	}
	state, _ := p.now()
	if state == Active {
		if err := p.app.tool.do(ctx, more.Enable(h)); err != nil {
			return err
		}
	}
	h.Requests = slices.Concat(w.handles.Requests, h.Requests)
	wider := newInstalled(w.plan.Join(more), h, &p.request)
	wider.samples = w.samples
	if w.recording != nil {
		wider.recording = w.recording
		wider.recording.follow(wider.plan)
	}
	p.app.place(wider)
	p.swap(state, wider, p.request)
	return nil
}
