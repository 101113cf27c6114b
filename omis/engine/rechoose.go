package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A request may run where it is dear because of another one: a breakpoint of that stands
// at the same address, say. Both say so. When the other one ends, the placement of the
// first is chosen again. All functions of this file want Engine.admin held by their
// caller, unless they say otherwise.

// hindrance is a refusal because of other requests, which may end.
type hindrance struct {
	*program.Refusal
	by []*csr
}

func (h *hindrance) Unwrap() error { return h.Refusal }

func hinders(by []*csr, format string, args ...any) error {
	return &hindrance{&program.Refusal{Why: fmt.Sprintf(format, args...)}, by}
}

// hindered records which requests keep a subscription from running where it is cheaper. It
// is tried again by itself where the reason may be gone soon.
func (e *Engine) hindered(p *process, s *subscription) {
	if slices.ContainsFunc(s.refused, func(o obstacle) bool { return o.passing }) {
		e.tryAgain(p, s)
	} else {
		delete(p.tries, s.csr)
	}
	for _, o := range s.refused {
		for _, c := range o.by {
			if c == s.csr || slices.Contains(p.victims[c], s) {
				continue
			}
			if p.victims == nil {
				p.victims = make(map[*csr][]*subscription)
			}
			p.victims[c] = append(p.victims[c], s)
		}
	}
}

// A request is tried again first after retriesAfter, then after twice that time, and so on;
// mostTries times in all.
const (
	retriesAfter = 250 * time.Millisecond
	mostTries    = 8
)

func (e *Engine) tryAgain(p *process, s *subscription) {
	n := p.tries[s.csr]
	if n == mostTries {
		return
	}
	if p.tries == nil {
		p.tries = make(map[*csr]int)
	}
	p.tries[s.csr] = n + 1
	time.AfterFunc(retriesAfter<<n, func() {
		e.admin.Lock()
		defer e.admin.Unlock()
		e.relieve([]*subscription{s})
	})
}

// isHinderedBy reports whether a subscription still runs where it does because of a
// request.
func (s *subscription) isHinderedBy(c *csr) bool {
	return s.csr.subs[s.proc] == s && slices.ContainsFunc(s.refused, func(o obstacle) bool { return slices.Contains(o.by, c) })
}

// beside adds to the placement of a request which others are dear because of it.
func beside(p omis.Placement, c *csr) omis.Placement {
	var words []string
	for proc := range c.subs {
		for _, s := range proc.victims[c] {
			if s.isHinderedBy(c) && !slices.Contains(words, string(s.csr.token)) {
				words = append(words, string(s.csr.token))
			}
		}
	}
	if len(words) > 0 {
		slices.Sort(words)
		p.Why += "; it keeps " + strings.Join(words, ", ") + " from running where it is cheaper"
	}
	return p
}

// rechoosesAfter is how long after a request ended placements are chosen again, for all
// requests that ended by then.
const rechoosesAfter = 200 * time.Millisecond

// freed has the placements chosen again of what a request was in the way of, which is not
// executed any more in a process.
func (e *Engine) freed(p *process, c *csr) {
	e.relieve(p.victims[c])
	delete(p.victims, c)
}

func (e *Engine) relieve(list []*subscription) {
	if len(list) == 0 {
		return
	}
	if len(e.relieved) == 0 {
		time.AfterFunc(rechoosesAfter, e.rechoose)
	}
	e.relieved = append(e.relieved, list...)
}

// rechoose chooses placements again. It takes Engine.admin itself.
func (e *Engine) rechoose() {
	e.admin.Lock()
	defer e.admin.Unlock()
	list := e.relieved
	e.relieved = nil
	moving := make(map[*subscription]bool)
	var order []*subscription
	for len(list) > 0 {
		s := list[0]
		if list = list[1:]; moving[s] || s.csr.subs[s.proc] != s {
			continue
		}
		moving[s] = true
		order = append(order, s)
		// What is dear because of one that moves moves as well.
		list = append(list, s.proc.victims[s.csr]...)
	}
	for {
		n := len(order)
		order = slices.DeleteFunc(order, func(s *subscription) bool {
			why := e.stays(s, moving)
			if why != nil {
				delete(moving, s)
				s.refused = nil
				s.refuse("", why)
				e.hindered(s.proc, s)
				s.placement = because(s.base(), reasons(s.refused))
			}
			return why != nil
		})
		if len(order) == n {
			break
		}
	}
	e.resettle(order)
}

// base is the placement of a subscription without the reasons why none is cheaper.
func (s *subscription) base() omis.Placement {
	if s.placed != nil {
		return placementOf(s.placed.Verdict())
	}
	return s.csr.placement
}

// stays says why a subscription can be executed in no other place, even if others move;
// nil: perhaps it can.
func (e *Engine) stays(s *subscription, moving map[*subscription]bool) error {
	if s.placed == nil || s.csr.event.source.kind != node.EventReachedAddr {
		if err := s.proc.inTheWay(s.csr, moving); err != nil {
			return err
		}
	}
	cells := s.csr.intervals()
	if len(cells) == 0 {
		return nil
	}
	for _, o := range s.csr.tool.own(omis.ClassCSR) {
		c := o.(*csr)
		other := c.subs[s.proc]
		if c == s.csr || !c.runsIn(s.proc) || other != nil && (moving[other] || other.level() < s.level()) {
			continue
		}
		if slices.ContainsFunc(c.intervals(), func(cell service.Cell) bool { return slices.Contains(cells, cell) }) {
			return hinders([]*csr{c}, "%s, which opens or closes the same intervals, cannot run where it is cheaper", c.token)
		}
	}
	return nil
}

// level is the index of the placement among those of the node.
func (s *subscription) level() int {
	if s.placed == nil {
		return len(s.proc.node().can.Placers)
	}
	return s.placed.level
}

// promote looks for better places for requests that the monitor executes since they were
// evicted. It takes Engine.admin itself.
func (e *Engine) promote(list []*subscription) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.resettle(slices.DeleteFunc(list, func(s *subscription) bool { return s.csr.subs[s.proc] != s || s.placed != nil }))
}

// resettle places requests anew that are executed somewhere. Their processes are suspended
// meanwhile.
func (e *Engine) resettle(list []*subscription) {
	byProc := make(map[*process][]*subscription)
	byTool := make(map[*Tool][]wanted)
	for _, s := range list {
		byProc[s.proc] = append(byProc[s.proc], s)
		byTool[s.csr.tool] = append(byTool[s.csr.tool], wanted{s.csr, target{s.proc, s.only}})
	}
	for p, some := range byProc {
		still := &stillness{e: e, proc: p}
		still.begin(some)
		defer still.end()
		requests := make([]*csr, len(some))
		for i, s := range some {
			requests[i] = s.csr
			s.breakOff()
		}
		e.unsubscribe(p, requests...)
	}
	for _, wants := range byTool {
		for i, err := range e.subscribeAll(wants) {
			if c := wants[i].csr; err != nil {
				c.tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{failure(err, wants[i].proc.token)}))
			}
		}
	}
}

// breakOff makes the intervals unfinished that are open: they end nowhere when the request
// moves.
func (s *subscription) breakOff() {
	if s.placed == nil {
		for _, cell := range s.csr.intervals() {
			if b, ok := cell.(service.Breaker); ok {
				b.BreakOff(s.proc.token)
			}
		}
		return
	}
	for _, f := range s.placed.feeds {
		if f.cell.Kind().HasIntervals() {
			f.broken.Store(true)
		}
	}
}

// neighbours are subscriptions with a program at an address, by ascending address.
type neighbours []*subscription

// neighbours lists the programs of a process at addresses that a test picks.
func (p *process) neighbours(which func(*subscription) bool) neighbours {
	var list neighbours
	for _, s := range p.programs {
		if s.csr.event.source.kind == node.EventReachedAddr && which(s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *subscription) int {
		return cmp.Or(cmp.Compare(a.at(), b.at()), a.csr.num-b.csr.num)
	})
	return list
}

func (s *subscription) at() uint64 { return s.csr.event.watch.Addr }

// farthest is how far from its address a program changes the code at most.
const farthest = 64

// touching lists those that change the code of an instruction at an address, or that are at
// the same address.
func (n neighbours) touching(addr uint64) (list []*subscription) {
	first := sort.Search(len(n), func(i int) bool { return n[i].at()+farthest > addr })
	for _, s := range n[first:] {
		if s.at() >= addr+farthest {
			break
		}
		touches := s.at() == addr
		for i := uint64(0); !touches && i < longest; i++ {
			touches = s.placed.Covers(addr + i)
		}
		if touches {
			list = append(list, s)
		}
	}
	return list
}

// blame adds to a refusal the programs in dearer placements that may be the cause: a probe
// that stands there changes the code.
func (n neighbours) blame(k *candidate, err error) error {
	if k.csr.event.source.kind != node.EventReachedAddr {
		return err
	}
	var by []*csr
	why := reason(err)
	for _, s := range n.touching(k.at()) {
		if s.csr != k.csr {
			by = append(by, s.csr)
			why += fmt.Sprintf("; %s, which runs in the placement %s, has a probe there", s.csr.token, s.placed.placer.Name())
		}
	}
	if len(by) == 0 {
		return err
	}
	return hinders(by, "%s", why)
}

// pull finds what keeps the placement from running some of a list, which it has judged,
// among the programs in cheaper placements: these have changed the code. They join the
// round, and the errors are gone of those that they were in the way of.
func (r *round) pull(list []*candidate, errs []error) (bonds []*bond) {
	if r.level == 0 || !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	p := list[0].proc
	mine := make(map[*subscription]bool)
	for _, b := range r.bonds {
		for _, k := range b.members {
			mine[k.subscription] = true
		}
	}
	cheaper := p.neighbours(func(s *subscription) bool { return !mine[s] && s.placed.level < r.level && s.placed.Stands() })
	pulled := make(map[*Tool][]*candidate)
	for i, k := range list {
		if errs[i] == nil || k.csr.event.source.kind != node.EventReachedAddr {
			continue
		}
		for _, s := range cheaper.touching(k.at()) {
			errs[i] = nil
			switch {
			case mine[s]:
			case s.csr.resting[p] == s:
				mine[s] = true
				r.e.forget(s.csr, p)
			default:
				mine[s] = true
				other := &candidate{subscription: s}
				if err := other.compile(r.e); err != nil {
					continue
				}
				why := fmt.Sprintf("%s, which runs in the placement %s, has a probe there", k.csr.token, r.placer.Name())
				s.refused = []obstacle{{placement: s.placed.placer.Name(), why: why, by: []*csr{k.csr}}}
				pulled[s.csr.tool] = append(pulled[s.csr.tool], other)
			}
		}
	}
	for _, some := range pulled {
		for _, b := range r.e.bonds(p, some) {
			if b.level < r.level {
				b.level, b.because = r.level, some[0].csr
			}
			bonds = append(bonds, b)
		}
	}
	r.bonds = append(r.bonds, bonds...)
	return bonds
}
