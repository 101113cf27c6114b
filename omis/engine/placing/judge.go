package placing

import (
	"cmp"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// This file says where requests run, or would run. It places nothing. All functions want the lock held by
// their caller.

// Where returns where a request runs or, if it is disabled, would run now. Of several processes it is the
// most expensive place.
func (x *Placing) Where(c *Request) omis.Placement {
	all := make([]omis.Placement, 0, len(c.Subs))
	for _, s := range c.Subs {
		all = append(all, shared(described(s.where(), s.Proc, c, c.victims()), s.Proc, c))
	}
	if len(c.Subs) == 0 {
		placements, _ := x.Judge([]*Request{c})
		return placements[0]
	}
	return dearest(all, c)
}

// Judge returns where requests of one tool that are disabled would run if they were enabled now, all
// together. The error is why one of them could not be executed.
func (x *Placing) Judge(list []*Request) (placements []omis.Placement, err error) {
	all := make(map[*Request][]omis.Placement)
	byProc := make(map[*Process][]*candidate)
	var procs []*Process
	for _, c := range list {
		if c.Watch.Event == 0 {
			continue
		}
		for _, t := range c.Owner.Targets() {
			if byProc[t.Proc] == nil {
				procs = append(procs, t.Proc)
			}
			byProc[t.Proc] = append(byProc[t.Proc], &candidate{Subscription: &Subscription{Request: c, Target: t}})
		}
	}
	for _, p := range procs {
		x.imagine(p, byProc[p])
		traced := slices.ContainsFunc(byProc[p], (*candidate).traces)
		for _, k := range byProc[p] {
			err = cmp.Or(err, k.err)
			at := described(k.placement, p, k.Request, append(k.victims(byProc[p]), k.ousted()...))
			if !traced {
				at = shared(at, p, k.Request)
			}
			at.Why += k.Request.Owner.Remark(p)
			all[k.Request] = append(all[k.Request], at)
		}
	}
	for _, c := range list {
		placements = append(placements, dearest(all[c], c))
	}
	return placements, err
}

// dearest returns the most expensive of a request's placements.
func dearest(all []omis.Placement, c *Request) omis.Placement {
	if len(all) == 0 {
		return c.Base
	}
	return slices.MaxFunc(all, func(a, b omis.Placement) int {
		switch trapA, trapB := a.Name == omis.Trap, b.Name == omis.Trap; {
		case trapA != trapB && trapA:
			return 1
		case trapA != trapB:
			return -1
		}
		return cmp.Compare(a.Cost, b.Cost)
	})
}

// described adds to a placement of a request what clients should know. The request is, or was, in the way of
// victims.
func described(at omis.Placement, p *Process, c *Request, victims []*Subscription) omis.Placement {
	return cautious(beside(p.machine().priced(at, c.Times), victims), c)
}

// traces reports whether the monitor would trace the process for the request, so that it holds no thread by a
// jump.
func (k *candidate) traces() bool {
	return k.placement.Name == omis.Trap && IsSysCall(k.Request.Watch.Event)
}

// victims returns the candidates that the request would be in the way of.
func (k *candidate) victims(among []*candidate) (list []*Subscription) {
	for _, other := range among {
		if other != k && other.refusedBy(k.Request) {
			list = append(list, other.Subscription)
		}
	}
	return list
}

// ousted returns the programs in the process that would be evicted if the monitor executed the request, as it would.
func (k *candidate) ousted() (list []*Subscription) {
	if k.placement.Name != omis.Trap || k.err != nil {
		return nil
	}
	c := k.Request
	return subscriptions(k.Proc, k.Proc.programsThat(func(s *Subscription) bool {
		covered := c.Watch.Event == node.EventReachedAddr && s.placed.Covers(c.Watch.Addr)
		return s.Request != c && s.Request.Subs[k.Proc] == s && (covered || (&candidate{Subscription: s}).evictedBy(c) != nil)
	}))
}

func subscriptions(p *Process, requests []*Request) (list []*Subscription) {
	for _, c := range requests {
		list = append(list, c.Subs[p])
	}
	return list
}

// imagine decides where requests would run as findPlaces does, but places nothing.
func (x *Placing) imagine(p *Process, list []*candidate) {
	list = slices.Clone(list)
	readersLast(list)
	var held []*candidate
	hold := func(k *candidate, err error) bool {
		if err != nil {
			k.refuse("", err)
			k.imagineHeld()
			held = append(held, k)
		}
		return err != nil
	}
	list = slices.DeleteFunc(list, func(k *candidate) bool { return hold(k, k.compile(x)) })
	list = slices.DeleteFunc(list, func(k *candidate) bool { return hold(k, k.besideHeld(held)) })
	bonds := x.bonds(p, list)
	placers := p.machine().Can.Placers
	for level, placer := range placers {
		r := &round{x: x, level: level, placer: placer, bonds: at(level, bonds), all: bonds}
		r.imagine()
	}
	for _, b := range at(len(placers), bonds) {
		for _, k := range b.members {
			if k.placed == nil {
				k.imagineHeld()
				held = append(held, k)
			}
		}
	}
	for i := 0; i < len(held); i++ {
		for _, k := range list {
			if err := k.evictedBy(held[i].Request); err != nil {
				k.refused = nil
				hold(k, err)
			}
		}
	}
}

// imagine chooses the placement of the round for the bonds that it does not refuse.
func (r *round) imagine() {
	r.try(func(list []*candidate) []error {
		verdicts, errs := r.placer.Judge(placings(list))
		for i, k := range list {
			if errs[i] == nil {
				k.placement = placementOf(verdicts[i])
			}
		}
		return errs
	})
	r.try(r.checkSources)
	for _, k := range r.newcomers() {
		k.placement = because(k.placement, reasons(k.refused))
	}
}

// imagineHeld decides that the monitor would execute the request, if it can.
func (k *candidate) imagineHeld() {
	k.err = k.canTime()
	k.placement = because(k.Request.Base, reasons(k.refused))
}

// besideHeld reports why no program of the request can be placed beside requests that the monitor would
// execute.
func (k *candidate) besideHeld(held []*candidate) error {
	var by []*Request
	for _, h := range held {
		w := h.Request.Watch
		switch {
		case IsSysCall(k.Request.Watch.Event) && k.Proc.CallsUnmarked(w.Event):
			by = append(by, h.Request)
		case k.stoppedAt(w):
			return ByBreakpoint([]*Request{h.Request}, w.Addr)
		}
	}
	if len(by) == 0 {
		return nil
	}
	return ByHeldThreads(by)
}

// evictedBy reports why the request's program would have to leave if the monitor executed another request.
func (k *candidate) evictedBy(c *Request) error {
	sources, intervals := sourcesOf(k.Request), k.Request.Owner.Intervals()
	among := func(cells []service.Cell) func(service.Cell) bool {
		return func(cell service.Cell) bool { return slices.Contains(cells, cell) }
	}
	switch {
	case k.placement.Name == omis.Trap:
		return nil
	case slices.ContainsFunc(slices.Collect(c.Owner.Changes()), among(sources)):
		return evictedBySource(c)
	case k.stoppedAt(c.Watch):
		return evictedByBreakpoint(c)
	case IsSysCall(k.Request.Watch.Event) && k.Proc.CallsUnmarked(c.Watch.Event):
		return evictedByHeldThreads(c)
	case slices.ContainsFunc(c.Owner.Intervals(), among(intervals)):
		return evictedByInterval(c)
	}
	return nil
}

// stoppedAt reports whether the request is about the address of a breakpoint.
func (k *candidate) stoppedAt(w node.Watch) bool {
	return w.Event == node.EventReachedAddr && k.Request.Watch.Event == w.Event && k.Request.Watch.Addr == w.Addr
}

// shared adds to the placement of a request that holds threads what the node reports about uprobes of other
// tools at its address.
func shared(p omis.Placement, at *Process, c *Request) omis.Placement {
	machine, id := at.Host.At()
	n, w := machine.Can.Neighbours, c.Watch
	if n == nil || p.Name != omis.Trap || w.Event != node.EventReachedAddr {
		return p
	}
	if note := n.Beside(id, w.Addr); note != "" {
		p.Why += "; " + note
	}
	return p
}
