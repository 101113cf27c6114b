package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// All functions of this file want Engine.admin held by their caller.

// inPlace is a request's program in a process.
type inPlace struct {
	program.Placed
	proc   *process
	placer program.Placer
	level  int // its index among the node's
	feeds  []*feed
	count  count // of its executions
	times  bool  // it opens or closes intervals
}

func (in *inPlace) release() {
	for _, f := range in.feeds {
		f.release()
	}
}

func placementOf(v program.Verdict) omis.Placement {
	return omis.Placement{Name: v.Name, Where: v.Where, Why: v.Why, Kind: v.Kind, OneIn: v.OneIn, Cost: v.Cost, Local: true}
}

// giveUp gives back the memory of a program that was taken away, as soon as no thread can
// add to it any more.
func (e *Engine) giveUp(in *inPlace) {
	if in.Lingers() {
		e.lingering = append(e.lingering, in)
		e.clearLater(restsFor)
		return
	}
	in.release()
}

// unplace takes programs away. What they measured stays in their cells.
func (e *Engine) unplace(list ...*subscription) {
	back := make([]*inPlace, len(list))
	for i, s := range list {
		back[i] = s.placed
	}
	e.takeAway(back)
	for _, s := range list {
		s.csr.settle(s)
		s.proc.crowd(s, -1)
		e.giveUp(s.placed)
		s.placed = nil
		delete(s.proc.programs, s.csr)
		if s.csr.subs[s.proc] == nil {
			e.freed(s.proc, s.csr)
		}
	}
}

// takeAway takes programs out of their places, of different processes and placements at
// the same time: a placement may have to wait for whoever is in one.
func (e *Engine) takeAway(list []*inPlace) {
	type where struct {
		proc   *process
		placer program.Placer
	}
	standing := make(map[where][]program.Placed)
	for _, in := range list {
		if in.Placed != nil {
			at := where{in.proc, in.placer}
			standing[at] = append(standing[at], in.Placed)
		}
	}
	var all sync.WaitGroup
	for at, placed := range standing {
		all.Go(func() {
			if err := at.placer.Remove(placed); err != nil {
				e.log.Warn("cannot take programs away", "process", at.proc.token, "placement", at.placer.Name(), "error", err)
			}
		})
	}
	all.Wait()
}

// restsFree reports whether the program costs next to nothing while it is not active.
func (in *inPlace) restsFree() bool {
	r, ok := in.placer.(program.Rester)
	return ok && r.RestsFree()
}

// restsFor is how long a program stands that is not active, if that costs nothing: who
// disables a request often enables it soon.
const restsFor = time.Second

// rest lets a program stand where it is, but not run.
func (c *csr) rest(s *subscription) {
	s.placed.SetActive(false)
	s.restsSince = time.Now()
	c.tool.e.clearLater(restsFor)
	delete(c.subs, s.proc)
	if c.resting == nil {
		c.resting = make(map[*process]*subscription)
	}
	c.resting[s.proc] = s
}

// clearLater has what rests cleared away after a time, unless that is due already.
func (e *Engine) clearLater(after time.Duration) {
	if !e.clearing {
		e.clearing = true
		time.AfterFunc(after, e.clearAway)
	}
}

// clearAway takes all programs away that have rested long enough, and gives back what
// others needed that no thread runs any more.
func (e *Engine) clearAway() {
	e.admin.Lock()
	defer e.admin.Unlock()
	e.clearing = false
	var tired []*subscription
	for _, t := range e.allTools() {
		for _, o := range t.own(omis.ClassCSR) {
			for _, s := range o.(*csr).resting {
				if left := restsFor - time.Since(s.restsSince); left > 0 {
					e.clearLater(left)
					continue
				}
				tired = append(tired, s)
			}
		}
	}
	for _, s := range tired {
		delete(s.csr.resting, s.proc)
	}
	e.unplace(tired...)
	e.drain()
}

// drain gives back what programs needed that have lingered until now.
func (e *Engine) drain() {
	list := e.lingering
	e.lingering = nil
	placed := make(map[program.Drainer][]program.Placed)
	for _, in := range list {
		if d, ok := in.placer.(program.Drainer); ok {
			placed[d] = append(placed[d], in.Placed)
		}
	}
	for d, some := range placed {
		d.Drain(some)
	}
	for _, in := range list {
		e.giveUp(in)
	}
}

// forget takes a program away that rests.
func (e *Engine) forget(c *csr, p *process) {
	if s := c.resting[p]; s != nil {
		delete(c.resting, p)
		e.unplace(s)
	}
}

// where is the placement of a request: where it runs or, while it is disabled, would
// run now. Of several processes the dearest one counts.
func (e *Engine) where(c *csr) omis.Placement {
	all := make([]omis.Placement, 0, len(c.subs))
	for _, s := range c.subs {
		all = append(all, shared(cautious(beside(s.proc.node().priced(s.where(), c.times), c), c), s.proc, c))
	}
	if len(c.subs) == 0 && c.event.source.kind != 0 {
		for _, t := range c.targets() {
			all = append(all, e.wouldBe(c, t))
		}
	}
	if len(all) == 0 {
		return c.placement
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

// wouldBe is where a request would run in a process.
func (e *Engine) wouldBe(c *csr, t target) omis.Placement {
	p := shared(t.proc.node().priced(e.judged(c, t), c.times), t.proc, c)
	if c.queriesAtEnd(t.proc) {
		p.Why += heldAtExit
	}
	return p
}

// shared adds to the placement of a request that holds threads what the node reports of the
// request's watch and the uprobes of other tools.
func shared(p omis.Placement, at *process, c *csr) omis.Placement {
	n, ok := declared(at.node().can.Neighbours)
	w := c.event.watch
	if !ok || p.Name != omis.Trap || w.Event != node.EventReachedAddr {
		return p
	}
	if note := n.Beside(at.at().id, w.Addr); note != "" {
		p.Why += "; " + note
	}
	return p
}

func (e *Engine) judged(c *csr, t target) omis.Placement {
	k := &candidate{subscription: &subscription{csr: c, only: t.only, proc: t.proc}}
	if err := k.compile(e); err != nil {
		return because(c.placement, reason(err))
	}
	b := e.bonds(t.proc, []*candidate{k})[0]
	for _, placer := range t.proc.node().can.Placers[b.level:] {
		verdicts, errs := placer.Judge([]program.Placing{k.placing})
		if errs[0] == nil {
			return because(placementOf(verdicts[0]), reasons(k.refused))
		}
		k.refuse(placer.Name(), errs[0])
	}
	return because(c.placement, reasons(k.refused))
}
