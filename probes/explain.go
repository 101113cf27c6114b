package probes

import (
	"fmt"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// trap is the placement of an event at an address: the thread runs into a
// breakpoint and its owner does the actions.
func trap() mir.Placement {
	return mir.Placement{
		Where: "trap",
		Why:   "a breakpoint handled by ptrace is how the monitor recognises that an address is reached",
		Cost:  10_000, // measured: 10 µs and more from the stop to the continuation
	}
}

// explain says what an instrumentation request would be. The tokens of what it
// would create are numbered from 1; the real ones are given out when it is done.
func explain(plan *translate.Plan, activated bool) *mir.Explain {
	h := imagined(plan)
	conditional := plan.Conditional(h)
	for i := range conditional {
		h.Requests = append(h.Requests, omis.Token(fmt.Sprintf("%s_%d", omis.ClassCSR, i+1)))
	}
	x := &mir.Explain{Matches: len(plan.Places), Cost: trap().Cost * float64(plan.HitsEach())}
	once(x, plan.Create())
	for _, request := range conditional {
		x.Requests = append(x.Requests, mir.ExplainedRequest{Text: request, Placement: trap()})
	}
	if activated {
		once(x, plan.Enable(h))
	}
	once(x, plan.Read(h))
	return x
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
	return h
}

// explainControl says what a control request would send for installed probes.
func explainControl(r *mir.ControlRequest, ps []*Probe) (mir.Document, error) {
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
