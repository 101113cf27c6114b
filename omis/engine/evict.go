package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// What the monitor executes, and what runs elsewhere, can be in each other's way. Then
// the monitor executes both. All functions of this file want Engine.admin held by their
// caller, unless they say otherwise.

// makeWay moves to the monitor what must not run elsewhere beside a request that the
// monitor executes: programs where its breakpoint stands, those at system calls, some of
// which will be ours, and those that open or close the same intervals.
func (e *Engine) makeWay(c *csr, p *process) {
	var list []*csr
	var why string
	switch kind := c.event.source.kind; {
	case kind == node.EventReachedAddr:
		list = p.programsThat(func(s *subscription) bool { return s.placed.Covers(c.event.watch.Addr) })
		why = "a breakpoint of " + string(c.token) + " stands at the same address"
	case roams(kind):
		list = p.programsThat(func(s *subscription) bool { return s.csr.event.source.kind == node.EventReachedAddr })
		why = string(c.token) + " looks out for library calls or single instructions, whose breakpoints may stand anywhere"
	}
	e.evict(p, hinders([]*csr{c}, "%s", why), list...)
	if plants(c.event.source.kind) {
		e.evict(p, hinders([]*csr{c}, "%s", "threads are held for "+string(c.token)+", and make system calls of their own for that"),
			p.programsThat(func(s *subscription) bool { return isSysCall(s.csr.event.source.kind) })...)
	}
	cells := c.intervals()
	if len(cells) == 0 {
		return
	}
	list = p.programsThat(func(s *subscription) bool {
		return s.csr.tool == c.tool && slices.ContainsFunc(s.csr.intervals(), func(cell service.Cell) bool { return slices.Contains(cells, cell) })
	})
	e.evict(p, hinders([]*csr{c}, "%s, which opens or closes the same intervals, is executed by the monitor", c.token), list...)
}

// programsThat are the requests with a program in the process that a test picks, also
// those whose programs rest, in the order of their definition.
func (p *process) programsThat(which func(*subscription) bool) []*csr {
	var list []*csr
	for c, s := range p.programs {
		if which(s) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *csr) int { return a.num - b.num })
	return list
}

// evict has the monitor execute requests that ran elsewhere in a process. An interval
// that is open then ends nowhere, and counts as unfinished.
func (e *Engine) evict(p *process, why error, list ...*csr) {
	var standing, resting []*subscription
	for _, c := range list {
		if s := c.resting[p]; s != nil {
			delete(c.resting, p)
			resting = append(resting, s)
		} else if s := c.subs[p]; s != nil && s.placed != nil && s.placed.Stands() {
			standing = append(standing, s)
		}
	}
	e.unplace(resting...)
	still := &stillness{e: e, proc: p}
	defer still.end()
	still.begin(standing)
	e.displace(true, standing...)
	for _, s := range standing {
		s.refused = nil
		s.refuse("", why)
		e.execute(&candidate{subscription: s})
	}
}

// displace takes programs away whose requests will be executed elsewhere. An interval
// that is open ends nowhere then. Sums stay in a store that is kept, unless the monitor
// executes the requests from now on.
func (e *Engine) displace(byMonitor bool, list ...*subscription) {
	for _, s := range list {
		delete(s.csr.resting, s.proc)
		for _, f := range s.placed.feeds {
			if byMonitor || f.cell.Kind().HasIntervals() {
				f.broken.Store(true)
			}
		}
	}
	e.unplace(list...)
}

// evictAll moves everything in a process that a test picks.
func (e *Engine) evictAll(p *process, why string, which func(*csr) bool) {
	e.evict(p, declined("%s", why), p.programsThat(func(s *subscription) bool { return which(s.csr) })...)
}

// unprogram moves to the monitor what runs in code that is about to be overwritten.
func (e *Engine) unprogram(p *process, addr, size uint64) {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.evictAll(p, "its code was written to", func(c *csr) bool {
		at := c.event.watch.Addr
		return at < addr+size && addr < at+longest
	})
}

// longest is the length of the longest instruction of any processor.
const longest = 16

// abandonCell ends the programs that work on an object that was deleted. The monitor
// executes their requests, and reports each time that there is no such object.
func (e *Engine) abandonCell(t *Tool, token omis.Token, cell service.Cell) {
	e.admin.Lock()
	defer e.admin.Unlock()
	for _, o := range t.own(omis.ClassProcess) {
		o.(*process).evictUsers(e, cell, string(token)+" does not exist any more")
	}
	delete(e.guarded, cell)
	e.unkeep(cell)
	e.forgetHits(cell)
}

// trap has the monitor execute a request's actions, and says why nothing is cheaper.
func (e *Engine) trap(s *subscription) error {
	for cell := range s.csr.changes() {
		e.inMemory(cell)
	}
	e.makeWay(s.csr, s.proc)
	if s.csr.times {
		s.proc.node().calibrate(omis.Trap) // what is measured is corrected as it is measured
	}
	s.placement = because(s.csr.placement, reasons(s.refused))
	if s.placement.Local {
		s.local = newLocalList(s.csr)
	}
	w := s.csr.event.watch
	if isDense(w.Event) {
		w.Threads = e.reg.tids(s.only)
	}
	var err error
	if w.Hold = s.csr.queriesAtEnd(s.proc); w.Hold {
		if s.point, err = e.pointAt(s.proc, w, s); err == nil {
			s.placement.Why += heldAtExit
			return nil
		}
		s.placement.Why += "; when the list is executed the process has ended, because it cannot be held at its exit: " + reason(err)
		w.Hold = false
	}
	s.point, err = e.pointAt(s.proc, w, s)
	return err
}
