package probes

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// explain says what an instrumentation request would be. The tokens of what it
// would create are numbered from 1; the real ones are given out when it is done.
func (a *App) explain(plan *translate.Plan, activated bool) (*mir.Explain, error) {
	h := imagined(plan)
	conditional := plan.Conditional(h)
	for i := range conditional {
		h.Requests = append(h.Requests, omis.Token(fmt.Sprintf("%s_%d", omis.ClassCSR, i+1)))
	}
	x := &mir.Explain{Matches: len(plan.Places)}
	once(x, plan.Create())
	for _, request := range conditional {
		p, err := a.placement(request)
		if err != nil {
			return nil, err
		}
		x.Requests = append(x.Requests, mir.ExplainedRequest{Text: request, Placement: p})
		if plan.OnRegion() {
			x.Cost, x.Rough = p.Cost*float64(plan.HitsEach()), p.Rough
		}
	}
	if activated {
		once(x, plan.Enable(h))
	}
	once(x, plan.Read(h))
	return x, nil
}

// placement is where a conditional request runs, or would run.
func (a *App) placement(request string) (mir.Placement, error) {
	x, err := a.tool.Explain(request)
	if err != nil {
		return mir.Placement{}, failf(CannotBeDone, "%v", err)
	}
	return inDocument(x), nil
}

// inDocument returns a placement as documents have it.
func inDocument(x omis.Explanation) mir.Placement {
	return mir.Placement{Where: x.Placement.Name, Why: x.Placement.Why, Cost: x.Placement.Cost, Measured: x.Placement.Measured, Rough: x.Placement.Rough(), Bias: float64(x.Bias)}
}

// place notes the different places where the conditional requests of a probe run.
// They change when it is activated: what one of them needs may move the others.
func (a *App) place(w *installed) {
	var all []mir.Placement
	for _, request := range w.handles.Requests {
		x, err := a.tool.State(request)
		if p := inDocument(x); err == nil && p.Where != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for i := range all {
		all[i].Why = a.named(all[i].Why)
	}
	w.placements.Store(&all)
	w.placedAt.Store(time.Now().UnixNano())
}

// placementsAge is how old may be what is told of where a probe's requests run: other
// requests may move them.
const placementsAge = 200 * time.Millisecond

// placeAgain is place for a probe that is active, if that was long ago.
func (p *Probe) placeAgain(w *installed) {
	if state, _ := p.now(); state == Active && time.Since(time.Unix(0, w.placedAt.Load())) >= placementsAge {
		p.app.place(w)
	}
}

var requestToken = regexp.MustCompile(`\b` + string(omis.ClassCSR) + `_[0-9]+\b`)

// named replaces the tokens of requests by the probes that they belong to: a client knows
// these.
func (a *App) named(why string) string {
	return requestToken.ReplaceAllStringFunc(why, func(token string) string {
		for _, p := range a.Probes() {
			if _, w := p.now(); w != nil && slices.Contains(w.handles.Requests, omis.Token(token)) {
				return p.id
			}
		}
		return token
	})
}

// once adds a request that is executed once, if it is one.
func once(x *mir.Explain, request string) {
	if request != "" {
		x.Requests = append(x.Requests, mir.ExplainedRequest{Text: request})
	}
}

// imagined are handles as a monitor that has created nothing yet would give
// them out.
func imagined(plan *translate.Plan) (h translate.Handles) {
	if plan.Counts() {
		h.Counter = "pa_c_1"
	}
	if plan.Times() {
		h.Timer = "pa_t_1"
	}
	if plan.TimesCPU() {
		h.CPUTimer = "pa_t_1"
		if plan.Times() {
			h.CPUTimer = "pa_t_2"
		}
	}
	h.Events = plan.Imagined()
	return h
}

// explainControl says what a control request would send for installed probes.
func explainControl(r *mir.ControlRequest, ps []addressed) (mir.Document, error) {
	if redefines(r) {
		return nil, failf(CannotBeDone, "a change of a probe is not explained: explain an instrreq with the same metrics and entities")
	}
	x := &mir.Explain{}
	for _, p := range ps {
		if _, w := p.now(); w != nil {
			once(x, w.request(r.Action))
		}
	}
	return x, nil
}

// request is what an action sends.
func (w *installed) request(action mir.Action) string {
	switch action {
	case mir.Activate:
		return w.plan.Enable(w.handles)
	case mir.Deactivate:
		return w.plan.Disable(w.handles)
	case mir.Reset:
		return w.plan.Reset(w.handles)
	case mir.Remove:
		return w.plan.Remove(w.handles)
	}
	return w.read
}
