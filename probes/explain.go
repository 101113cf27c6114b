package probes

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// explain returns the OMIS requests of an instrumentation request without sending them. The
// tokens of objects that it would create are numbered from 1; the real numbers are known only
// afterwards.
func (a *App) explain(plan *translate.Plan, activated bool) (*mir.Explain, error) {
	h := plan.Imagined()
	conditional := plan.Conditional(h)
	for i := range conditional {
		h.Requests = append(h.Requests, omis.Token(fmt.Sprintf("%s_%d", omis.ClassCSR, i+1)))
	}
	x := &mir.Explain{Matches: len(plan.Places), Notice: plan.Besides}
	create := slices.DeleteFunc([]string{plan.Create(), plan.Gains.Create(h)}, func(request string) bool { return request == "" })
	for _, request := range create {
		once(x, request)
	}
	explained, err := a.tool.connected().Explain(create, conditional...)
	if err != nil {
		return nil, failf(CannotBeDone, "%v", err)
	}
	for i, e := range explained {
		p := e.Placement
		p.Why = imagined(p.Why, explained, h.Requests, a.named)
		x.Requests = append(x.Requests, mir.ExplainedRequest{Text: conditional[i], Placement: p})
		if i < len(plan.Places) {
			x.Cost, x.Rough = p.Cost*float64(plan.HitsEach()), p.Rough()
		}
	}
	if activated {
		once(x, plan.Enable(h))
	}
	once(x, plan.Read(h))
	return x, nil
}

// place records the different placements of a probe's conditional requests. Activating the probe
// may change them, and so may other probes.
func (a *App) place(w *installed) {
	var all []omis.Placement
	for _, request := range w.handles.Requests {
		x, err := a.tool.connected().State(request)
		p := x.Placement
		p.Why = a.named(p.Why)
		if at := x.Missed; at.UnixNano() > w.missed.Load() && !at.IsZero() {
			w.missed.Store(at.UnixNano())
		}
		if err == nil && p.Name != "" && !slices.ContainsFunc(all, func(q omis.Placement) bool { return looksLike(p, q) }) {
			all = append(all, p)
		}
	}
	w.placements.Store(&all)
	w.placedAt.Store(time.Now().UnixNano())
}

// looksLike reports whether two placements are equal in a document.
func looksLike(p, q omis.Placement) bool {
	return p.Name == q.Name && p.Why == q.Why && p.Cost == q.Cost && p.Measured == q.Measured && p.Bias == q.Bias
}

// placementsAge is the age at which the recorded placements of a probe are obsolete, because
// other requests may have changed them.
const placementsAge = 200 * time.Millisecond

// placeAgain calls place for an active probe if its recorded placements are obsolete.
func (p *Probe) placeAgain(w *installed) {
	if state, _ := p.now(); state == Active && time.Since(time.Unix(0, w.placedAt.Load())) >= placementsAge {
		p.app.place(w)
	}
}

var requestToken = regexp.MustCompile(`\b` + string(omis.ClassCSR) + `_[0-9]+\b`)

// named replaces the tokens of conditional requests by the ids of their probes, which clients
// know.
func (a *App) named(why string) string {
	if !strings.Contains(why, string(omis.ClassCSR)+"_") {
		return why // as most reasons; the expression takes microseconds
	}
	return requestToken.ReplaceAllStringFunc(why, func(token string) string {
		for _, p := range a.Probes() {
			if _, w := p.now(); w != nil && slices.Contains(w.handles.Requests, omis.Token(token)) {
				return p.id
			}
		}
		return token
	})
}

// imagined replaces, in a reason, the tokens of conditional requests that are only explained by those
// in the document, and those of others as named does.
func imagined(why string, explained []omis.Explanation, shown []omis.Token, named func(string) string) string {
	return requestToken.ReplaceAllStringFunc(why, func(token string) string {
		i := slices.IndexFunc(explained, func(e omis.Explanation) bool { return e.Token == omis.Token(token) })
		if i >= 0 {
			return string(shown[i])
		}
		return named(token)
	})
}

// once adds a request that is executed once, unless it is empty.
func once(x *mir.Explain, request string) {
	if request != "" {
		x.Requests = append(x.Requests, mir.ExplainedRequest{Text: request})
	}
}

// explainControl returns what a control request would send for installed probes.
func explainControl(ctx context.Context, a *App, r *mir.ControlRequest, ps []addressed) (mir.Document, error) {
	x := &mir.Explain{}
	if redefines(r) {
		return explainChanges(ctx, a, r, ps)
	}
	for _, p := range ps {
		if _, w := p.now(); w != nil {
			once(x, w.request(r.Action))
		}
	}
	return x, nil
}

// explainChanges returns what a control request would send for probes that measure something else afterwards: the
// requests of the new definition, and that which removes the old one.
func explainChanges(ctx context.Context, a *App, r *mir.ControlRequest, ps []addressed) (mir.Document, error) {
	a.op.Lock()
	defer a.op.Unlock()
	x := &mir.Explain{}
	var errs Errors
	for _, p := range ps {
		errs = append(errs, p.blame(p.explainChange(ctx, r, x))...)
	}
	if len(errs) > 0 {
		return nil, collected(errs)
	}
	return x, nil
}

// explainChange adds to x the requests for one probe. The caller holds op.
func (p *Probe) explainChange(ctx context.Context, r *mir.ControlRequest, x *mir.Explain) error {
	next := p.redefined(r)
	plan, err := p.app.weaving.planAgain(ctx, p, &next)
	if err != nil {
		return err
	}
	state, old := p.now()
	if old == nil || keepsValues(r, plan, old) {
		return nil
	}
	active := (state == Active || r.Action == mir.Activate) && r.Action != mir.Deactivate
	one, err := p.app.explain(plan, active)
	if err != nil {
		return err
	}
	x.Requests = append(x.Requests, one.Requests...)
	x.Matches, x.Cost, x.Rough = x.Matches+one.Matches, x.Cost+one.Cost, x.Rough || one.Rough
	x.Notice = joined(x.Notice, one.Notice)
	once(x, old.plan.Remove(old.handles))
	return nil
}

// request returns the request that executes an action on the probe.
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
