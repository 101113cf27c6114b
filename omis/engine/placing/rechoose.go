package placing

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

// A request may run where it is expensive because of another one, for example because that has a breakpoint
// at the same address. The placements of both say so. When the other one ends, the placement of the first
// is chosen again. All functions of this file want the lock held by their caller, unless their comments say
// otherwise.

// hindrance is a refusal because of other requests, which may end.
type hindrance struct {
	*program.Refusal
	by []*Request
}

func (h *hindrance) Unwrap() error { return h.Refusal }

// Hinders makes the refusal of a placement because of other requests.
func Hinders(by []*Request, format string, args ...any) error {
	return &hindrance{&program.Refusal{Why: fmt.Sprintf(format, args...)}, by}
}

// hindered records which requests keep a subscription from running where it is cheaper. If a reason is
// temporary, it starts a timer to try again.
func (x *Placing) hindered(p *Process, s *Subscription) {
	if slices.ContainsFunc(s.refused, func(o obstacle) bool { return o.passing }) {
		x.tryAgain(p, s)
	} else {
		delete(p.tries, s.Request)
	}
	for _, o := range s.refused {
		for _, c := range o.by {
			if c == s.Request || slices.Contains(p.victims[c], s) {
				continue
			}
			if p.victims == nil {
				p.victims = make(map[*Request][]*Subscription)
			}
			p.victims[c] = append(p.victims[c], s)
		}
	}
}

// A request is tried again after retriesAfter, then after twice that time, and so on, mostTries times in
// all.
const (
	retriesAfter = 250 * time.Millisecond
	mostTries    = 8
)

func (x *Placing) tryAgain(p *Process, s *Subscription) {
	n := p.tries[s.Request]
	if n == mostTries {
		return
	}
	if p.tries == nil {
		p.tries = make(map[*Request]int)
	}
	p.tries[s.Request] = n + 1
	time.AfterFunc(retriesAfter<<n, func() {
		x.lock.Lock()
		defer x.lock.Unlock()
		x.relieve([]*Subscription{s})
	})
}

// isHinderedBy reports whether a request still keeps a subscription from running where it is cheaper.
func (s *Subscription) isHinderedBy(c *Request) bool {
	return s.Request.Subs[s.Proc] == s && s.refusedBy(c)
}

// refusedBy reports whether a request is among the reasons of the placement.
func (s *Subscription) refusedBy(c *Request) bool {
	return slices.ContainsFunc(s.refused, func(o obstacle) bool { return slices.Contains(o.by, c) })
}

// beside adds to the placement of a request which others it keeps from running where it is cheaper.
func beside(p omis.Placement, victims []*Subscription) omis.Placement {
	var words []string
	for _, s := range victims {
		if !slices.Contains(words, string(s.Request.Token)) {
			words = append(words, string(s.Request.Token))
		}
	}
	if len(words) > 0 {
		slices.Sort(words)
		p.Why += "; it keeps " + strings.Join(words, ", ") + " from running where it is cheaper"
		if p.Name == omis.Trap && p.Cost > 0 {
			p.Why += fmt.Sprintf(" (a hit by trap takes %s)", time.Duration(p.Cost).Round(time.Microsecond))
		}
	}
	return p
}

// victims returns the subscriptions that a request keeps from running where it is cheaper.
func (c *Request) victims() (list []*Subscription) {
	for proc := range c.Subs {
		for _, s := range proc.victims[c] {
			if s.isHinderedBy(c) {
				list = append(list, s)
			}
		}
	}
	return list
}

// rechoosesAfter is how long after the end of a request placements are chosen again. Several requests may
// end meanwhile.
const rechoosesAfter = 200 * time.Millisecond

// freed is called when a request is not executed in a process any more. It chooses again, later, the
// placements of the subscriptions that the request was in the way of.
func (x *Placing) freed(p *Process, c *Request) {
	x.relieve(p.victims[c])
	delete(p.victims, c)
}

func (x *Placing) relieve(list []*Subscription) {
	if len(list) == 0 {
		return
	}
	if len(x.relieved) == 0 {
		time.AfterFunc(rechoosesAfter, x.rechoose)
	}
	x.relieved = append(x.relieved, list...)
}

// rechoose chooses placements again. It takes the lock itself.
func (x *Placing) rechoose() {
	x.lock.Lock()
	defer x.lock.Unlock()
	list := x.relieved
	x.relieved = nil
	moving := make(map[*Subscription]bool)
	var order []*Subscription
	for len(list) > 0 {
		s := list[0]
		if list = list[1:]; moving[s] || s.Request.Subs[s.Proc] != s {
			continue
		}
		moving[s] = true
		order = append(order, s)
		// Subscriptions that a moving one keeps from cheaper places move as well.
		list = append(list, s.Proc.victims[s.Request]...)
	}
	for {
		n := len(order)
		order = slices.DeleteFunc(order, func(s *Subscription) bool {
			why := x.stays(s, moving)
			if why != nil {
				delete(moving, s)
				s.refused = nil
				s.refuse("", why)
				x.hindered(s.Proc, s)
				s.placement = because(s.base(), reasons(s.refused))
			}
			return why != nil
		})
		if len(order) == n {
			break
		}
	}
	x.resettle(order)
}

// base returns the placement of a subscription without the reasons why nothing is cheaper.
func (s *Subscription) base() omis.Placement {
	if s.placed != nil {
		return placementOf(s.placed.Verdict())
	}
	return s.Request.Base
}

// stays reports why a subscription cannot run anywhere else, even if the subscriptions in moving do.
func (x *Placing) stays(s *Subscription, moving map[*Subscription]bool) error {
	if s.placed == nil || s.Request.Watch.Event != node.EventReachedAddr {
		if err := s.Proc.Host.InTheWay(s.Request, moving); err != nil {
			return err
		}
	}
	cells := s.Request.Owner.Intervals()
	if len(cells) == 0 {
		return nil
	}
	for _, c := range s.Request.Tool.Requests() {
		other := c.Subs[s.Proc]
		if c == s.Request || !c.runsIn(s.Proc) || other != nil && (moving[other] || other.level() < s.level()) {
			continue
		}
		if slices.ContainsFunc(c.Owner.Intervals(), func(cell service.Cell) bool { return slices.Contains(cells, cell) }) {
			return Hinders([]*Request{c}, "%s, which opens or closes the same intervals, cannot run where it is cheaper", c.Token)
		}
	}
	return nil
}

// level returns the index of the placement among those of the node.
func (s *Subscription) level() int {
	if s.placed == nil {
		return len(s.Proc.machine().Can.Placers)
	}
	return s.placed.level
}

// Promote chooses placements for requests that the monitor executes since they were evicted. It takes the
// lock itself.
func (x *Placing) Promote(list []*Subscription) {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.resettle(slices.DeleteFunc(list, func(s *Subscription) bool { return s.Request.Subs[s.Proc] != s || s.placed != nil }))
}

// resettle places subscriptions again. It suspends their processes meanwhile.
func (x *Placing) resettle(list []*Subscription) {
	byProc := make(map[*Process][]*Subscription)
	byTool := make(map[Tool][]Wanted)
	for _, s := range list {
		byProc[s.Proc] = append(byProc[s.Proc], s)
		byTool[s.Request.Tool] = append(byTool[s.Request.Tool], Wanted{s.Request, s.Target})
	}
	for p, some := range byProc {
		still := &stillness{x: x, Proc: p}
		still.begin(some)
		defer still.end()
		requests := make([]*Request, len(some))
		for i, s := range some {
			requests[i] = s.Request
			s.breakOff()
		}
		x.Unsubscribe(p, requests...)
	}
	for _, wants := range byTool {
		for i, err := range x.SubscribeAll(wants) {
			if c := wants[i].Request; err != nil {
				c.Owner.Disabled(wants[i].Proc, err)
			}
		}
	}
}

// breakOff marks open intervals as unfinished, because they cannot be closed after the request moves.
func (s *Subscription) breakOff() {
	if s.placed == nil {
		for _, cell := range s.Request.Owner.Intervals() {
			if b, ok := cell.(service.Breaker); ok {
				b.BreakOff(s.Proc.Token)
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

// neighbours are subscriptions with programs at addresses, sorted by address.
type neighbours []*Subscription

// neighbours returns the programs of a process at addresses that satisfy a condition.
func (p *Process) neighbours(which func(*Subscription) bool) neighbours {
	var list neighbours
	for _, s := range p.programs {
		if s.Request.Watch.Event == node.EventReachedAddr && which(s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *Subscription) int {
		return cmp.Or(cmp.Compare(a.at(), b.at()), a.Request.Num-b.Request.Num)
	})
	return list
}

func (s *Subscription) at() uint64 { return s.Request.Watch.Addr }

// farthest is the most bytes from its address on that a program may change.
const farthest = 64

// touching returns the subscriptions whose programs change the code of the instruction at an address, or
// are at the same address.
func (n neighbours) touching(addr uint64) (list []*Subscription) {
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

// blame adds to a refusal the programs in more expensive placements that may be the cause: their probes
// change the code.
func (n neighbours) blame(k *candidate, err error) error {
	if k.Request.Watch.Event != node.EventReachedAddr {
		return err
	}
	var by []*Request
	why := Reason(err)
	for _, s := range n.touching(k.at()) {
		if s.Request != k.Request {
			by = append(by, s.Request)
			why += fmt.Sprintf("; %s, which runs in the placement %s, has a probe there", s.Request.Token, s.placed.placer.Name())
		}
	}
	if len(by) == 0 {
		return err
	}
	return Hinders(by, "%s", why)
}

// pull finds programs in cheaper placements that are in the way of candidates in list: they have changed
// the code. Their bonds join the round, and the errors of the candidates that they were in the way of are
// cleared.
func (r *round) pull(list []*candidate, errs []error) (bonds []*bond) {
	if r.level == 0 || !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	p := list[0].Proc
	mine := make(map[*Subscription]bool)
	for _, b := range r.bonds {
		for _, k := range b.members {
			mine[k.Subscription] = true
		}
	}
	cheaper := p.neighbours(func(s *Subscription) bool { return !mine[s] && s.placed.level < r.level && s.placed.Stands() })
	pulled := make(map[Tool][]*candidate)
	for i, k := range list {
		if errs[i] == nil || k.Request.Watch.Event != node.EventReachedAddr {
			continue
		}
		for _, s := range cheaper.touching(k.at()) {
			errs[i] = nil
			switch {
			case mine[s]:
			case s.Request.resting[p] == s:
				mine[s] = true
				r.x.forget(s.Request, p)
			default:
				mine[s] = true
				other := &candidate{Subscription: s}
				if err := other.compile(r.x); err != nil {
					continue
				}
				why := fmt.Sprintf("%s, which runs in the placement %s, has a probe there", k.Request.Token, r.placer.Name())
				s.refused = []obstacle{{placement: s.placed.placer.Name(), why: why, by: []*Request{k.Request}}}
				pulled[s.Request.Tool] = append(pulled[s.Request.Tool], other)
			}
		}
	}
	for _, some := range pulled {
		for _, b := range r.x.bonds(p, some) {
			if b.level < r.level {
				b.level, b.because = r.level, some[0].Request
			}
			bonds = append(bonds, b)
		}
	}
	r.bonds, r.all = append(r.bonds, bonds...), append(r.all, bonds...)
	return bonds
}
