package probes

import (
	"fmt"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// Placement says where the actions of a conditional request run, why there, and
// what that costs.
type Placement struct {
	Request string
	Kind    string // "trap"
	Why     string
	Cost    string // of each hit
}

// place predicts the placement of a plan's conditional requests.
func place(requests []string) []Placement {
	ps := make([]Placement, len(requests))
	for i, r := range requests {
		ps[i] = Placement{
			Request: r,
			Kind:    "trap",
			Why:     "a breakpoint, handled by ptrace: the way there is to recognise that an address is reached; the counter and the timer are local, so they are done before the thread is seen by anybody else",
			Cost:    "10 µs and more, during which the thread stands still",
		}
	}
	return ps
}

// explain says what an instrumentation request would be.
func explain(plan *translate.Plan, activated bool) *Explanation {
	h := imagined(plan)
	conditional := plan.Conditional(h)
	x := &Explanation{Placements: place(conditional)}
	for i := range conditional {
		h.Requests = append(h.Requests, omis.Token(fmt.Sprintf("%s_%d", omis.ClassCSR, i+1)))
	}
	x.add(plan.Create())
	x.add(conditional...)
	if activated {
		x.add(plan.Enable(h))
	}
	x.add(plan.Read(h))
	return x
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

func (x *Explanation) add(requests ...string) {
	for _, r := range requests {
		if r != "" {
			x.Requests = append(x.Requests, r)
		}
	}
}

// explainControl says what a control request would send for installed probes.
func (a *App) explainControl(r *mir.ControlRequest, ps []*Probe) (Answer, error) {
	if redefines(r) {
		return Answer{}, failf(CannotBeDone, "a change of a probe is not explained: explain an instrreq with the same metrics and entities")
	}
	x := &Explanation{}
	for _, p := range ps {
		if _, w := p.now(); w != nil {
			x.add(w.request(r.Action))
		}
	}
	return Answer{Explanation: x}, nil
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
