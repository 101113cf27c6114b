package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/syntax"
)

// Explain implements omis.Tool.
func (t *Tool) Explain(create []string, requests ...string) ([]omis.Explanation, error) {
	scope := t
	if len(create) > 0 {
		scope = t.scratch()
		defer func() { _ = t.e.release(scope) }()
	}
	for _, text := range create {
		if err := scope.execute(text, &sink{}, nil).Err(); err != nil {
			return nil, err
		}
	}
	list := make([]omis.Explanation, len(requests))
	imagined := make([]*csr, len(requests))
	for i, text := range requests {
		var err error
		if list[i], imagined[i], err = scope.imagine(text); err != nil {
			return nil, err
		}
	}
	return list, t.judge(list, imagined)
}

// scratch returns a tool with the same processes for objects that are made only to explain what uses
// them. The engine does not know it as one of its tools.
func (t *Tool) scratch() *Tool {
	s := newTool(t.e, t.name)
	s.imaginary = true
	s.hidden.Store(t.hidden.Load())
	t.mu.Lock()
	defer t.mu.Unlock()
	s.nodes, s.procs = slices.Clone(t.nodes), slices.Clone(t.procs)
	return s
}

// imagined returns the object of a scratch tool that a token stands for: the first one of its class has
// the number 1.
func (t *Tool) imagined(token omis.Token) object {
	for i, it := range t.items[token.Class()] {
		if tokenOf(token.Class(), i+1) == token {
			return it
		}
	}
	return nil
}

// imagine makes a conditional request that is only explained; nil for another request.
func (t *Tool) imagine(text string) (x omis.Explanation, c *csr, err error) {
	r, err := syntax.Parse(text)
	if faults := t.e.check(r); err != nil || len(faults) > 0 {
		return x, nil, refusal(err, faults).Err()
	}
	steps := t.e.steps(r.Actions)
	x = omis.Explanation{Request: syntax.Print(r), Placement: t.e.basePlacement(r, steps)}
	if r.Event == nil {
		return x, nil, nil
	}
	s := t.e.catalog.Lookup(r.Event.Service)
	def := newDefinition(s, t.e.sources[s.Name], r.Event.Args)
	if failed := t.checkEvent(&def); len(failed) > 0 {
		return x, nil, omis.Reply{failed}.Err()
	}
	c = &csr{tool: t, request: r, event: def, steps: steps}
	if t.imaginary { // reasons name others of its requests
		c = t.e.reg.add(omis.ClassCSR, func(i ident) object { c.ident = i; return c }).(*csr)
		t.csrs = append(t.csrs, c)
	}
	c.begin()
	c.run.Imagined = true
	x.Token, x.Points = c.token, c.points()
	return x, c, nil
}

// judge enters the placements of imagined requests.
func (t *Tool) judge(list []omis.Explanation, imagined []*csr) error {
	var runs []*placing.Request
	for _, c := range imagined {
		if c != nil {
			runs = append(runs, &c.run)
		}
	}
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	placements, err := t.e.placing.Judge(runs)
	if err != nil {
		return err
	}
	for i, c := range imagined {
		if c != nil {
			list[i].Placement, placements = placements[0], placements[1:]
		}
	}
	return nil
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
		Enabled: c.active.Load(), Failed: c.failed.Load(), Missed: c.run.Missed(),
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
