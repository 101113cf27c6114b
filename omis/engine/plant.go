package engine

import (
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// All functions of this file want Engine.admin held by their caller.

// wanted is a request that is to be executed in a process from now on.
type wanted struct {
	csr *csr
	target
}

// subscribe begins to look out for a request's event in a process.
func (e *Engine) subscribe(c *csr, t target) error { return e.subscribeAll([]wanted{{c, t}})[0] }

// subscribeAll does so for many requests of one tool, which takes much less time than
// one after the other.
func (e *Engine) subscribeAll(list []wanted) []error {
	candidates := make([]*candidate, len(list))
	byProc := make(map[*process][]*candidate)
	var procs []*process
	for i, w := range list {
		if byProc[w.proc] == nil {
			procs = append(procs, w.proc)
		}
		candidates[i] = &candidate{subscription: w.subscription(e)}
		byProc[w.proc] = append(byProc[w.proc], candidates[i])
	}
	for _, p := range procs {
		e.settle(p, byProc[p])
	}
	errs := make([]error, len(list))
	for i, k := range candidates {
		errs[i] = k.err
	}
	return errs
}

// subscription is a new one, or that of a program that rested since the request was
// disabled, if everything is still as it was.
func (w *wanted) subscription(e *Engine) *subscription {
	s := w.csr.resting[w.proc]
	if s != nil && s.placed.Stands() && maps.Equal(s.only, w.only) && (s.only == nil) == (w.only == nil) {
		return s
	}
	e.forget(w.csr, w.proc)
	return &subscription{csr: w.csr, only: w.only, proc: w.proc, hits: make(map[string]uint64), parts: make(map[string]float64)}
}

// settle finds a place for each in a process. What only the monitor can execute comes
// first: its breakpoints are in the way of programs.
func (e *Engine) settle(p *process, list []*candidate) {
	check := func(k *candidate, err error) bool {
		if err != nil {
			e.forget(k.csr, p)
			k.refuse("", err)
			e.execute(k)
		}
		return err != nil
	}
	list = slices.DeleteFunc(list, func(k *candidate) bool { return check(k, k.compile(e)) })
	list = slices.DeleteFunc(list, func(k *candidate) bool { return check(k, p.inTheWay(k.csr, nil)) })
	bonds := e.bonds(p, list)
	placers := p.node().can.Placers
	still := &stillness{e: e, proc: p}
	defer still.end()
	for level, placer := range placers {
		r := &round{e: e, level: level, placer: placer, bonds: at(level, bonds), still: still}
		bonds = append(bonds, r.run()...)
	}
	last := &round{e: e, level: len(placers), bonds: at(len(placers), bonds), still: still}
	last.lift()
	for _, k := range last.newcomers() {
		e.execute(k)
	}
}

// execute has the monitor execute a request that is enabled just now, or ran elsewhere
// so far.
func (e *Engine) execute(k *candidate) {
	c, p := k.csr, k.proc
	err := k.canTime()
	if err == nil {
		err = e.trap(k.subscription)
	}
	switch {
	case err == nil:
		c.subs[p] = k.subscription
		c.observe(p)
		e.hindered(p, k.subscription)
	case c.subs[p] == k.subscription:
		delete(c.subs, p)
		c.tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{failure(err, p.token)}))
	default:
		k.err = err
	}
}

// canTime says why the request cannot time anything where its event happens.
func (k *candidate) canTime() error {
	w := k.csr.event.watch
	t, ok := declared(k.proc.node().can.TimingChecker)
	if !ok || !k.csr.times || w.Event != node.EventReachedAddr {
		return nil
	}
	clock := program.ClockOrdered
	for _, s := range k.steps {
		if s.op.Times() && s.op.Clock == program.ClockCPU {
			clock = program.ClockCPU
		}
	}
	return t.CanTime(k.proc.at().id, w.Addr, clock)
}

// observe notes that a request is executed in a process.
func (c *csr) observe(p *process) {
	if c.observed == nil {
		c.observed = make(map[*process]float64)
	}
	if _, before := c.observed[p]; !before {
		c.observed[p] = p.cpu.time(p)
	}
}

// round is an attempt to place bonds in one placement, all at once.
type round struct {
	e      *Engine
	level  int
	placer program.Placer
	bonds  []*bond
	still  *stillness
}

// run places what is not refused. Where a placement refuses one of a bond, the whole
// bond waits for the next round. It returns the bonds that ran in cheaper placements and
// were in the way.
func (r *round) run() (pulled []*bond) {
	r.lift()
	r.try(func(list []*candidate) []error {
		_, errs := r.placer.Judge(placings(list))
		pulled = r.pull(list, errs)
		return errs
	})
	if len(pulled) > 0 {
		r.lift()
		r.try(func(list []*candidate) []error {
			_, errs := r.placer.Judge(placings(list))
			return errs
		})
	}
	r.try(r.feed)
	r.try(r.place)
	timed := false
	for _, b := range r.bonds {
		for _, k := range b.members {
			r.start(k)
			timed = timed || k.placed.times
		}
	}
	if timed {
		go r.bonds[0].members[0].proc.node().calibrate(r.placer.Name())
	}
	return pulled
}

// lift takes away what runs where it is cheaper, but others of its bond cannot. What
// it measured stays.
func (r *round) lift() {
	var list []*subscription
	for _, b := range r.bonds {
		for _, k := range b.members {
			if k.placed != nil && k.placed.level < r.level {
				list = append(list, k.subscription)
			}
		}
	}
	r.still.begin(list)
	r.e.displace(r.placer == nil, list...)
}

// newcomers are those that are still to be placed.
func (r *round) newcomers() []*candidate {
	var list []*candidate
	for _, b := range r.bonds {
		for _, k := range b.members {
			if k.placed == nil {
				list = append(list, k)
			}
		}
	}
	return list
}

// try does a step for all newcomers. Bonds with one that failed leave the round.
func (r *round) try(step func([]*candidate) []error) {
	list := r.newcomers()
	if len(list) == 0 {
		return
	}
	var dearer neighbours
	for i, err := range step(list) {
		if err != nil {
			if dearer == nil {
				dearer = list[i].proc.neighbours(func(s *subscription) bool { return s.placed.level > r.level })
			}
			list[i].refuse(r.placer.Name(), dearer.blame(list[i], err))
			list[i].bond.leave(r.level, list[i].csr)
		}
	}
	var back []*inPlace
	r.bonds = slices.DeleteFunc(r.bonds, func(b *bond) bool {
		if b.level == r.level {
			return false
		}
		for _, k := range b.members {
			if k.in != nil {
				back, k.in = append(back, k.in), nil
			}
		}
		b.explain(r.placer.Name())
		return true
	})
	r.e.takeAway(back)
	for _, in := range back {
		in.release()
	}
}

// feed gives programs the memory they need.
func (r *round) feed(list []*candidate) []error {
	errs := make([]error, len(list))
	for i, k := range list {
		k.in = &inPlace{proc: k.proc, placer: r.placer, level: r.level}
		for n, step := range k.steps {
			f, err := r.e.feed(r.placer, k.proc, step.cell)
			if err != nil {
				errs[i] = err
				break
			}
			k.in.feeds = append(k.in.feeds, f)
			k.placing.Program[n].Store = f.store
		}
	}
	return errs
}

// place places programs; they do not run yet.
func (r *round) place(list []*candidate) []error {
	placed, errs := r.placer.Place(placings(list))
	for i, k := range list {
		if errs[i] == nil {
			k.in.Placed = placed[i]
		}
	}
	return errs
}

// start lets a program run that has its place.
func (r *round) start(k *candidate) {
	c, p := k.csr, k.proc
	if k.placed == nil {
		k.placed = k.in
		k.placement = because(placementOf(k.in.Verdict()), reasons(k.refused))
		k.in.counting(k.placing.Program)
		if k.in.times = c.times; k.in.times {
			k.in.edges(k.placing.Program)
		}
		p.programs[c] = k.subscription
		p.crowd(k.subscription, 1)
	}
	delete(c.resting, p)
	c.subs[p] = k.subscription
	c.observe(p)
	r.e.hindered(p, k.subscription)
	k.placed.SetActive(true)
}

func placings(list []*candidate) []program.Placing {
	all := make([]program.Placing, len(list))
	for i, k := range list {
		all[i] = k.placing
	}
	return all
}

// at are the bonds whose turn it is.
func at(level int, bonds []*bond) []*bond {
	var list []*bond
	for _, b := range bonds {
		if b.level == level {
			list = append(list, b)
		}
	}
	return list
}
