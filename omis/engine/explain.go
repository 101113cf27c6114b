package engine

import (
	"mirador/omis"
	"mirador/omis/syntax"
)

// Explain returns what a request would do, without executing it.
func (t *Tool) Explain(text string) (omis.Explanation, error) {
	r, err := syntax.Parse(text)
	if faults := t.e.check(r); err != nil || len(faults) > 0 {
		return omis.Explanation{}, refusal(err, faults).Err()
	}
	steps := t.e.steps(r.Actions)
	x := omis.Explanation{Request: syntax.Print(r), Placement: t.e.basePlacement(r, steps)}
	if r.Event == nil {
		return x, nil
	}
	s := t.e.catalog.Lookup(r.Event.Service)
	def := newDefinition(s, t.e.sources[s.Name], r.Event.Args)
	if failed := t.checkEvent(&def); len(failed) > 0 {
		return x, omis.Reply{failed}.Err()
	}
	c := &csr{tool: t, request: r, event: def, steps: steps}
	c.begin()
	c.run.Imagined = true
	x.Points = c.points()
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	x.Placement = t.e.placing.Where(&c.run)
	return x, nil
}

// State returns what a conditional request does.
func (t *Tool) State(request omis.Token) (omis.Explanation, error) {
	o, err := t.find(request)
	c, ok := o.(*csr)
	switch {
	case err != nil:
		return omis.Explanation{}, err
	case !ok:
		return omis.Explanation{}, omis.Errorf(omis.TypeMismatch, "%s is no conditional request", request)
	}
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	x := omis.Explanation{
		Request: syntax.Print(c.request), Placement: t.e.placing.Where(&c.run), Points: c.points(),
		Enabled: c.active.Load(), Failed: c.failed.Load(),
	}
	x.Placement.Bias = c.run.Bias()
	return x, nil
}

func (c *csr) points() []omis.Point {
	if c.event.source.kind == 0 {
		return nil
	}
	var list []omis.Point
	for _, target := range c.targets() {
		list = append(list, omis.Point{Event: c.event.service.Name, Proc: target.proc.token, Addr: c.event.watch.Addr})
	}
	return list
}
