package placing

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// A request that the monitor executes and a program can be in each other's way. Then the monitor executes
// both. All functions of this file want the lock held by their caller.

// MakeWay evicts the programs that must not run beside a request that the monitor executes: programs at the
// address of its breakpoint; programs at system calls, if threads make system calls for the monitor; and
// programs that open or close the same intervals.
func (x *Placing) MakeWay(c *Request, p *Process) {
	var list []*Request
	var why error
	switch kind := c.Watch.Event; {
	case kind == node.EventReachedAddr:
		list = p.programsThat(func(s *Subscription) bool { return s.placed.Covers(c.Watch.Addr) })
		why = evictedByBreakpoint(c)
	case Roams(kind):
		list = p.programsThat(func(s *Subscription) bool { return s.Request.Watch.Event == node.EventReachedAddr })
		why = Hinders([]*Request{c}, "%s looks out for library calls or single instructions, whose breakpoints may stand anywhere", c.Token)
	}
	x.evict(p, why, list...)
	if p.CallsUnmarked(c.Watch.Event) {
		x.evict(p, evictedByHeldThreads(c), p.programsThat(func(s *Subscription) bool { return IsSysCall(s.Request.Watch.Event) })...)
	}
	cells := c.Owner.Intervals()
	if len(cells) == 0 {
		return
	}
	list = p.programsThat(func(s *Subscription) bool {
		return s.Request.Tool == c.Tool && slices.ContainsFunc(s.Request.Owner.Intervals(), func(cell service.Cell) bool { return slices.Contains(cells, cell) })
	})
	x.evict(p, evictedByInterval(c), list...)
}

// The functions evictedBy… return why a program must leave when the monitor executes a request.

func evictedByBreakpoint(c *Request) error {
	return Hinders([]*Request{c}, "a breakpoint of %s stands at the same address", c.Token)
}

func evictedByHeldThreads(c *Request) error {
	return Hinders([]*Request{c}, "threads are held for %s, and make system calls of their own for that", c.Token)
}

func evictedBySource(c *Request) error {
	return Hinders([]*Request{c}, "%s, which changes what it reads, is executed elsewhere", c.Token)
}

func evictedByInterval(c *Request) error {
	return Hinders([]*Request{c}, "%s, which opens or closes the same intervals, is executed by the monitor", c.Token)
}

// ByBreakpoint and ByHeldThreads are why a program cannot be placed beside requests that the monitor executes.

func ByBreakpoint(by []*Request, addr uint64) error {
	return Hinders(by, "a breakpoint of another request stands at %#x", addr)
}

func ByHeldThreads(by []*Request) error {
	return Hinders(by, "threads of the process are held for other requests, and make system calls of their own for that")
}

// programsThat returns the requests whose programs in the process satisfy a condition, including programs
// that rest, in the order of their numbers.
func (p *Process) programsThat(which func(*Subscription) bool) []*Request {
	var list []*Request
	for c, s := range p.programs {
		if which(s) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *Request) int { return a.Num - b.Num })
	return list
}

// evict makes the monitor execute requests whose programs are in a process. An interval that is open is never
// closed, and counts as unfinished.
func (x *Placing) evict(p *Process, why error, list ...*Request) {
	var standing, resting []*Subscription
	for _, c := range list {
		if s := c.resting[p]; s != nil {
			delete(c.resting, p)
			resting = append(resting, s)
		} else if s := c.Subs[p]; s != nil && s.placed != nil && s.placed.Stands() {
			standing = append(standing, s)
		}
	}
	x.unplace(resting...)
	still := &stillness{x: x, Proc: p}
	defer still.end()
	still.begin(standing)
	x.displace(true, standing...)
	for _, s := range standing {
		s.refused = nil
		s.refuse("", why)
		x.execute(&candidate{Subscription: s})
	}
}

// displace removes programs whose requests will be executed elsewhere. Intervals that are open in these
// programs are never closed, so their feeds get no other programs. The feeds of kept cells that are sums
// stay, unless the monitor executes the requests from now on.
func (x *Placing) displace(byMonitor bool, list ...*Subscription) {
	for _, s := range list {
		delete(s.Request.resting, s.Proc)
		for _, f := range s.placed.feeds {
			if byMonitor || f.cell.Kind().HasIntervals() {
				f.broken.Store(true)
			}
		}
	}
	x.unplace(list...)
}

// EvictAll evicts the programs of a process that satisfy a condition.
func (x *Placing) EvictAll(p *Process, why string, which func(*Request) bool) {
	x.evict(p, Declined("%s", why), p.programsThat(func(s *Subscription) bool { return which(s.Request) })...)
}

// Clear makes the monitor execute all enabled requests of a process for a while. It returns their subscriptions,
// which Promote places again.
func (x *Placing) Clear(p *Process, why string) (moved []*Subscription) {
	list := p.programsThat(func(s *Subscription) bool { return s.Request.Subs[p] == s })
	x.EvictAll(p, why, func(*Request) bool { return true })
	for _, c := range list {
		if s := c.Subs[p]; s != nil {
			moved = append(moved, s)
		}
	}
	return moved
}

// Unprogram evicts programs from code that is about to be overwritten.
func (x *Placing) Unprogram(p *Process, addr, size uint64) {
	x.EvictAll(p, "its code was written to", func(c *Request) bool {
		at := c.Watch.Addr
		return at < addr+size && addr < at+longest
	})
}

// longest is the length of the longest instruction of any processor.
const longest = 16

// AbandonCell evicts programs that change an object, which was deleted. The monitor executes their
// requests, and reports for each event that the object does not exist.
func (x *Placing) AbandonCell(t Tool, token omis.Token, cell service.Cell) {
	for _, p := range t.Processes() {
		p.evictUsers(x, cell, string(token)+" does not exist any more")
	}
	delete(x.guarded, cell)
	x.ForgetCell(cell)
}

// trap makes the monitor execute a request, and says in its placement why nothing is cheaper.
func (x *Placing) trap(s *Subscription) (err error) {
	for cell := range s.Request.Owner.Changes() {
		x.inMemory(cell)
	}
	x.evictReaders(s.Request, s.Proc, len(s.Proc.machine().Can.Placers))
	x.evictBlind(s.Request, s.Proc)
	x.MakeWay(s.Request, s.Proc)
	if s.Request.Times {
		s.Proc.machine().Calibrate(omis.Trap) // so that its measurements can be corrected from the beginning
	}
	s.placement = because(s.Request.Base, reasons(s.refused))
	var note string
	s.held, note, err = x.host.Execute(s)
	s.placement.Why += note
	return err
}
