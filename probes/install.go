package probes

import (
	"context"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// install creates the objects of a plan in the monitor and defines its conditional requests,
// which are disabled. If it fails, it deletes what it has created.
func (a *App) install(ctx context.Context, plan *translate.Plan, p *Probe, r *mir.InstrRequest) (*installed, error) {
	h, err := a.makeObjects(ctx, plan)
	if err != nil {
		return nil, err
	}
	p.made++
	lost, err := p.keep(h)
	if err != nil {
		a.clear(ctx, plan, h)
		return nil, err
	}
	h.Requests, err = defineAll(ctx, a, plan.Conditional(h))
	if err != nil {
		a.clear(ctx, plan, h)
		return nil, err
	}
	w := newInstalled(plan, h, r)
	w.at = placesOf(plan, len(h.Requests))
	w.lost = lost
	return w, nil
}

// defineAll defines conditional requests. The tokens are of those before the first error.
func defineAll(ctx context.Context, a *App, requests []string) (defined []omis.Token, err error) {
	for _, request := range requests {
		csr, err := a.watch(ctx, request)
		if err != nil {
			return defined, err
		}
		defined = append(defined, csr)
	}
	return defined, nil
}

// placesOf returns the places of the conditional requests of a plan.
func placesOf(plan *translate.Plan, requests int) []translate.Place {
	at := make([]translate.Place, requests)
	copy(at, plan.Places)
	return at
}

func newInstalled(plan *translate.Plan, h translate.Handles, r *mir.InstrRequest) *installed {
	w := &installed{plan: plan, handles: h, read: plan.Read(h), times: r.Measuring, budget: r.Budget}
	if translate.Scheduled(r.Measuring) || asked(plan) {
		w.samples = &samples{}
	}
	if plan.Recorded {
		w.recording = newRecording(plan)
	}
	return w
}

// asked reports whether measurements of the plan happen when a VALUE or a delivery asks for
// them, so that the values of earlier ones must be kept for its aggregates.
func asked(plan *translate.Plan) bool { return !plan.OnRegion() && len(plan.Functions) > 0 }

func (a *App) makeObjects(ctx context.Context, plan *translate.Plan) (translate.Handles, error) {
	var h translate.Handles
	var err error
	if create := plan.Create(); create != "" {
		var reply omis.Reply
		if reply, err = a.tool.request(ctx, create); err != nil {
			return h, err
		}
		h, err = plan.Bind(reply)
	}
	if err == nil {
		err = a.makeGains(ctx, plan, &h)
	}
	if err != nil {
		a.clear(ctx, plan, h)
	}
	return h, err
}

// makeGains creates the timers whose clocks are other objects of the plan.
func (a *App) makeGains(ctx context.Context, plan *translate.Plan, h *translate.Handles) error {
	create := plan.Gains.Create(*h)
	if create == "" {
		return nil
	}
	reply, err := a.tool.request(ctx, create)
	if err != nil {
		return err
	}
	return plan.Gains.Bind(reply, h)
}

// watch defines a conditional request of a probe. The monitor sends no replies for successful
// executions (DontReturnOK); errors are logged.
func (a *App) watch(ctx context.Context, request string) (omis.Token, error) {
	return a.tool.define(ctx, request, func(r omis.Reply) {
		if err := r.Err(); err != nil {
			a.registry.config.Log.Warn("conditional request failed", "app", a.name, "request", request, "error", err)
		}
	}, omis.DontReturnOK)
}

// clear deletes what was created for a plan that could not be installed.
func (a *App) clear(ctx context.Context, plan *translate.Plan, h translate.Handles) {
	if err := a.tool.do(context.WithoutCancel(ctx), plan.Remove(h)); err != nil {
		a.registry.config.Log.Warn("cannot remove half a probe", "app", a.name, "error", err)
	}
}

// strike removes probes from the lists of the application.
func (a *App) strike(list []*Probe) {
	gone := make(map[*Probe]bool, len(list))
	for _, p := range list {
		gone[p] = true
	}
	is := func(p *Probe) bool { return gone[p] }
	a.waiting = slices.DeleteFunc(a.waiting, is)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes = slices.DeleteFunc(a.probes, is)
}
