package placing

import (
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// All functions of this file want the lock held by their caller.

// Subscribe begins the execution of a request in a process.
func (x *Placing) Subscribe(c *Request, t Target) error { return x.SubscribeAll([]Wanted{{c, t}})[0] }

// SubscribeAll is Subscribe for many requests of one tool, which takes much less time than one after the
// other.
func (x *Placing) SubscribeAll(list []Wanted) []error {
	candidates := make([]*candidate, len(list))
	byProc := make(map[*Process][]*candidate)
	var procs []*Process
	for i, w := range list {
		if byProc[w.Proc] == nil {
			procs = append(procs, w.Proc)
		}
		candidates[i] = &candidate{Subscription: w.newSubscription(x)}
		byProc[w.Proc] = append(byProc[w.Proc], candidates[i])
	}
	for _, p := range procs {
		x.findPlaces(p, byProc[p])
	}
	errs := make([]error, len(list))
	for i, k := range candidates {
		errs[i] = k.err
	}
	return errs
}

// newSubscription returns a new subscription, or the one of a program that rests since the request was
// disabled, if that is still right.
func (w *Wanted) newSubscription(x *Placing) *Subscription {
	s := w.Request.resting[w.Proc]
	if s != nil && s.placed.Stands() && maps.Equal(s.Only, w.Only) && (s.Only == nil) == (w.Only == nil) {
		return s
	}
	x.forget(w.Request, w.Proc)
	return &Subscription{Request: w.Request, Target: w.Target}
}

// findPlaces finds a place for each candidate in a process. It begins with requests that only the monitor can
// execute, because their breakpoints are in the way of programs.
func (x *Placing) findPlaces(p *Process, list []*candidate) {
	check := func(k *candidate, err error) bool {
		if err != nil {
			x.forget(k.Request, p)
			k.refuse("", err)
			x.execute(k)
		}
		return err != nil
	}
	readersLast(list)
	list = slices.DeleteFunc(list, func(k *candidate) bool { return check(k, k.compile(x)) })
	list = slices.DeleteFunc(list, func(k *candidate) bool { return check(k, p.Host.InTheWay(k.Request, nil)) })
	bonds := x.bonds(p, list)
	placers := p.machine().Can.Placers
	still := &stillness{x: x, Proc: p}
	defer still.end()
	for level, placer := range placers {
		r := &round{x: x, level: level, placer: placer, bonds: at(level, bonds), all: bonds, still: still}
		bonds = append(bonds, r.run()...)
	}
	last := &round{x: x, level: len(placers), bonds: at(len(placers), bonds), still: still}
	last.lift()
	for _, k := range last.newcomers() {
		x.execute(k)
	}
}

// execute makes the monitor execute a request that was enabled just now, or ran elsewhere before.
func (x *Placing) execute(k *candidate) {
	c, p := k.Request, k.Proc
	err := k.canTime()
	if err == nil {
		err = x.trap(k.Subscription)
	}
	switch {
	case err == nil:
		c.Subs[p] = k.Subscription
		c.observe(p)
		x.hindered(p, k.Subscription)
	case c.Subs[p] == k.Subscription:
		delete(c.Subs, p)
		c.Owner.Disabled(p, err)
	default:
		k.err = err
	}
}

// canTime reports why the monitor cannot measure for the request at its event.
func (k *candidate) canTime() error {
	c := k.Request
	if err := k.canRecordStack(); err != nil || !c.Times {
		return err
	}
	clocks := map[program.Clock]bool{program.ClockOrdered: true}
	for _, cell := range c.Owner.Intervals() {
		if timed, ok := cell.(service.Clocked); ok {
			clocks[timed.Clock()] = true
		}
	}
	t := k.Proc.machine().Can.TimingChecker
	for _, clock := range slices.Sorted(maps.Keys(clocks)) {
		if t != nil && c.Watch.Event == node.EventReachedAddr {
			if err := t.CanTime(k.Proc.id(), c.Watch.Addr, clock); err != nil {
				return err
			}
		}
		if clock.IsOfTask() && !clock.IsSteady() {
			return omis.Errorf(omis.UnsupportedService, "%s; %s", program.NotHeld, reasons(k.refused))
		}
	}
	return c.canRead(k.Proc)
}

// canRecordStack reports why the request cannot record stack pointers at its event: in Go it records the
// goroutine, too.
func (k *candidate) canRecordStack() error {
	w, t := k.Request.Watch, k.Proc.machine().Can.TimingChecker
	records := slices.ContainsFunc(k.steps, func(s Step) bool { return s.Op.Load.From == program.FromStack })
	if !records || t == nil || w.Event != node.EventReachedAddr {
		return nil
	}
	return t.CanTime(k.Proc.id(), w.Addr, program.ClockOrdered)
}

// observe records that a request is executed in a process.
func (c *Request) observe(p *Process) {
	if c.observed == nil {
		c.observed = make(map[*Process]float64)
	}
	if _, before := c.observed[p]; !before {
		c.observed[p] = p.cpu.time(p)
	}
}

// round is the attempt to place bonds in one placement, all together.
type round struct {
	x      *Placing
	level  int
	placer program.Placer
	bonds  []*bond
	all    []*bond // with those of other placements
	still  *stillness

	changing map[service.Cell][]*Request // see changers
}

// run places the bonds that the placement does not refuse. If it refuses one request of a bond, the whole
// bond waits for the next round. run returns bonds from cheaper placements that were in the way.
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
	r.try(r.checkSources)
	r.try(r.feed)
	r.try(r.place)
	timed := false
	for _, b := range r.bonds {
		for _, k := range b.members {
			r.start(k)
			timed = timed || k.placed.times
		}
	}
	r.evictReaders()
	if timed {
		go r.bonds[0].members[0].Proc.machine().Calibrate(r.placer.Name())
	}
	return pulled
}

// lift removes programs from cheaper placements, because others of their bonds cannot run there. What they
// measured stays.
func (r *round) lift() {
	var list []*Subscription
	for _, b := range r.bonds {
		for _, k := range b.members {
			if k.placed != nil && k.placed.level < r.level {
				list = append(list, k.Subscription)
			}
		}
	}
	r.still.begin(list)
	r.x.displace(r.placer == nil, list...)
}

// newcomers returns the candidates that are not placed yet.
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

// try does a step for all newcomers. Bonds with an error leave the round.
func (r *round) try(step func([]*candidate) []error) {
	list := r.newcomers()
	if len(list) == 0 {
		return
	}
	var dearer neighbours
	for i, err := range step(list) {
		if err != nil {
			if dearer == nil {
				dearer = list[i].Proc.neighbours(func(s *Subscription) bool { return s.placed.level > r.level })
			}
			list[i].refuse(r.placer.Name(), dearer.blame(list[i], err))
			list[i].bond.leave(r.level, list[i].Request)
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
	r.x.takeAway(back)
	for _, in := range back {
		in.release()
	}
}

// feed gives programs their stores.
func (r *round) feed(list []*candidate) []error {
	errs := make([]error, len(list))
	for i, k := range list {
		k.in = &inPlace{proc: k.Proc, placer: r.placer, level: r.level}
		for n, step := range k.steps {
			f, err := r.x.feed(r.placer, k.Proc, step.Cell)
			if err != nil {
				errs[i] = err
				break
			}
			k.in.feeds = append(k.in.feeds, f)
			k.placing.Program[n].Store = f.store
			if step.Source == nil {
				continue
			}
			if f, err = r.x.feed(r.placer, k.Proc, step.Source); err != nil {
				errs[i] = err
				break
			}
			k.in.sources = append(k.in.sources, f)
			k.placing.Program[n].Source = f.store
		}
	}
	return errs
}

// evictReaders evicts programs in other placements that read what the programs of this round change.
func (r *round) evictReaders() {
	for _, b := range r.bonds {
		for _, k := range b.members {
			r.x.evictReaders(k.Request, k.Proc, r.level)
		}
	}
}

// place places programs, which are not active yet.
func (r *round) place(list []*candidate) []error {
	placed, errs := r.placer.Place(placings(list))
	for i, k := range list {
		if errs[i] == nil {
			k.in.Placed = placed[i]
		}
	}
	return errs
}

// start activates a placed program.
func (r *round) start(k *candidate) {
	c, p := k.Request, k.Proc
	if k.placed == nil {
		k.placed = k.in
		k.placement = because(placementOf(k.in.Verdict()), reasons(k.refused))
		k.in.counting(k.placing.Program)
		if k.in.times = c.Times; k.in.times {
			k.in.edges(k.placing.Program)
		}
		p.programs[c] = k.Subscription
		p.crowd(k.Subscription, 1)
		p.tie(k.in, 1)
	}
	delete(c.resting, p)
	c.Subs[p] = k.Subscription
	c.observe(p)
	r.x.hindered(p, k.Subscription)
	k.placed.SetActive(true)
}

func placings(list []*candidate) []program.Placing {
	all := make([]program.Placing, len(list))
	for i, k := range list {
		all[i] = k.placing
	}
	return all
}

// at returns the bonds for the placement with an index.
func at(level int, bonds []*bond) []*bond {
	var list []*bond
	for _, b := range bonds {
		if b.level == level {
			list = append(list, b)
		}
	}
	return list
}
