package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/service"
)

// A request whose actions only count and measure time is placed by the node where it
// costs least, if the node is an omis.Placer; else, and wherever the placer refuses, it
// is executed by the monitor (dispatch.go). All functions of this file want
// Engine.admin held by their caller.

// inPlace is a request's program in a process.
type inPlace struct {
	omis.Placed
	placer omis.Placer
	feeds  []*feed
	count  count // of its executions
	times  bool  // it opens or closes intervals
}

// placing is where a request's program may run in a process, before it does.
type placing struct {
	placer  omis.Placer
	watch   omis.Watch
	steps   []compiled
	program omis.Program // its steps have no stores yet
}

// placingOf finds out whether the program of a request may run in a process. An error
// says why it may not.
func (e *Engine) placingOf(c *csr, t target) (*placing, error) {
	if !c.placement.local || c.event.source.kind != omis.EventReachedAddr {
		return nil, declined("%s", c.placement.Why)
	}
	placers := t.proc.node().placers()
	switch {
	case len(placers) == 0:
		return nil, declined("this monitor generates no code for the program or the kernel")
	case c.wantsReplies():
		return nil, declined("the tool wants a reply for each execution")
	case c.tool.hidesAny(t.proc):
		return nil, declined("the tool has detached from a thread of the process")
	}
	steps, err := compile(c.tool, c.steps)
	if err != nil {
		return nil, err
	}
	if err := e.inTheWay(c, t.proc); err != nil {
		return nil, err
	}
	p := &placing{placer: placers[0], watch: c.event.watch, steps: steps}
	p.watch.Proc, p.watch.Threads = t.proc.at().id, e.reg.tids(t.only)
	if t.only != nil && (len(t.only) == 0 || len(p.watch.Threads) != len(t.only)) {
		return nil, declined("a thread that it names has ended")
	}
	for _, s := range steps {
		p.program = append(p.program, s.op)
	}
	return p, nil
}

// inTheWay says why a program cannot be placed beside what the monitor executes in the
// process: the other half of its intervals, or a breakpoint at the same address.
func (e *Engine) inTheWay(c *csr, p *process) error {
	for key := range p.points {
		switch {
		case key.kind == omis.EventReachedAddr && key.addr == c.event.watch.Addr:
			return declined("a breakpoint of another request stands at %#x", key.addr)
		case roams(key.kind):
			return declined("another request looks out for library calls or single instructions, whose breakpoints may stand anywhere")
		}
	}
	for _, cell := range c.intervals() {
		for _, other := range c.partners(cell) {
			s := other.subs[p]
			if other.event.source.kind == 0 && other.active.Load() || s != nil && s.placed == nil {
				return declined("%s, which opens or closes the same intervals, is executed by the monitor", other.token)
			}
		}
	}
	return nil
}

// roams tells whether the node finds out itself where to plant for a kind of event, now
// or later. A breakpoint and a uprobe at one address spoil each other.
func roams(kind omis.EventKind) bool {
	switch kind {
	case omis.EventLibCallStarted, omis.EventLibCallEnded, omis.EventStepped, omis.EventSteppedOver:
		return true
	}
	return false
}

// partners are the tool's other requests that open or close intervals in a cell.
func (c *csr) partners(cell service.Cell) []*csr {
	var list []*csr
	for _, o := range c.tool.own(omis.ClassCSR) {
		if other := o.(*csr); other != c && slices.Contains(other.intervals(), cell) {
			list = append(list, other)
		}
	}
	return list
}

// tryPlace has the request's program run in the process.
func (e *Engine) tryPlace(s *subscription) error {
	p, err := e.placingOf(s.csr, target{s.proc, s.only})
	if err != nil {
		return err
	}
	in := &inPlace{}
	for i, step := range p.steps {
		if step.cell == nil {
			in.release()
			return declined("an object of the list does not exist")
		}
		f, err := e.feed(p.placer, s.proc, step.cell)
		if err != nil {
			in.release()
			return err
		}
		in.feeds = append(in.feeds, f)
		p.program[i].Store = f.store
	}
	in.placer = p.placer
	placed, errs := p.placer.Place([]omis.Placing{{Watch: p.watch, Program: p.program}})
	if errs[0] != nil {
		in.release()
		return errs[0]
	}
	in.Placed = placed[0]
	in.counting(p.program)
	s.placed = in
	s.placement = placementOf(in.Verdict())
	if in.times = s.csr.times; in.times {
		in.edges(p.program)
		go s.proc.node().calibrate(s.placement.Name)
	}
	in.SetActive(true)
	return nil
}

func (in *inPlace) release() {
	for _, f := range in.feeds {
		f.release()
	}
}

func placementOf(v omis.Verdict) Placement {
	return Placement{Name: v.Name, Where: v.Where, Why: v.Why, Kind: v.Kind, Cost: v.Cost, local: true}
}

// atOnce bounds how many programs are taken away at the same time.
const atOnce = 32

// unplace takes programs away, at the same time: a placement may have to wait for
// whoever is in one. What they measured stays in their cells.
func (e *Engine) unplace(list ...*subscription) {
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, s := range list {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := s.placed.placer.Remove([]omis.Placed{s.placed.Placed}); err != nil {
				e.log.Warn("cannot take a program away", "process", s.proc.token, "address", s.csr.event.watch.Addr, "error", err)
			}
		})
	}
	all.Wait()
	for _, s := range list {
		s.csr.settle(s)
		s.placed.release()
		s.placed = nil
	}
}

// wake makes a program run again that rested since its request was disabled, if
// everything is still as it was.
func (e *Engine) wake(c *csr, t target) bool {
	s := c.resting[t.proc]
	if s == nil {
		return false
	}
	_, err := e.placingOf(c, t)
	if err != nil || !s.placed.Stands() || !maps.Equal(s.only, t.only) || (s.only == nil) != (t.only == nil) {
		e.forget(c, t.proc)
		return false
	}
	delete(c.resting, t.proc)
	c.subs[t.proc] = s
	s.placed.SetActive(true)
	return true
}

// restsFor is how long a program stands that does not run. It costs the target nearly
// as much as one that runs; but who disables a request often enables it soon, and to
// take a program away takes the longest of all.
const restsFor = time.Second

// rest lets a program stand where it is, but not run.
func (c *csr) rest(s *subscription) {
	s.placed.SetActive(false)
	s.restsSince = time.Now()
	time.AfterFunc(restsFor, c.tool.e.clearAway)
	delete(c.subs, s.proc)
	if c.resting == nil {
		c.resting = make(map[*process]*subscription)
	}
	c.resting[s.proc] = s
}

// clearAway takes all programs away that have rested long enough.
func (e *Engine) clearAway() {
	e.admin.Lock()
	defer e.admin.Unlock()
	var tired []*subscription
	for _, t := range e.allTools() {
		for _, o := range t.own(omis.ClassCSR) {
			c := o.(*csr)
			for p, s := range c.resting {
				if time.Since(s.restsSince) >= restsFor {
					delete(c.resting, p)
					tired = append(tired, s)
				}
			}
		}
	}
	e.unplace(tired...)
}

// forget takes a program away that rests.
func (e *Engine) forget(c *csr, p *process) {
	if s := c.resting[p]; s != nil {
		delete(c.resting, p)
		e.unplace(s)
	}
}

// makeWay moves to the monitor what must not run elsewhere beside a request that the
// monitor executes: programs at the same address, and those that open or close the
// same intervals.
func (e *Engine) makeWay(c *csr, p *process) {
	kind := c.event.source.kind
	for _, other := range e.placedIn(p) {
		switch {
		case kind == omis.EventReachedAddr && other.event.watch.Addr == c.event.watch.Addr:
			e.evict(other, p, "a breakpoint of "+string(c.token)+" stands at the same address")
		case roams(kind):
			e.evict(other, p, string(c.token)+" looks out for library calls or single instructions, whose breakpoints may stand anywhere")
		}
	}
	for _, cell := range c.intervals() {
		for _, other := range c.partners(cell) {
			e.evict(other, p, string(c.token)+", which opens or closes the same intervals, is executed by the monitor")
		}
	}
}

// placedIn are the requests that have a program in a process.
func (e *Engine) placedIn(p *process) []*csr {
	var list []*csr
	for _, t := range e.allTools() {
		for _, o := range t.own(omis.ClassCSR) {
			c := o.(*csr)
			if s := c.subs[p]; c.resting[p] != nil || s != nil && s.placed != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// evict has the monitor execute a request that ran elsewhere in a process. An interval
// that is open then ends nowhere, and counts as unfinished.
func (e *Engine) evict(c *csr, p *process, why string) {
	e.forget(c, p)
	s := c.subs[p]
	if s == nil || s.placed == nil || !s.placed.Stands() {
		return
	}
	for _, f := range s.placed.feeds {
		f.broken.Store(true)
	}
	e.unplace(s)
	if err := e.trap(s, why); err != nil {
		delete(c.subs, p)
		c.tool.replies.push(c.to, c.stateReply(omis.CSRDisabled, omis.ServiceResult{failure(err, p.token)}))
	}
}

// evictAll moves everything in a process that a test picks.
func (e *Engine) evictAll(p *process, why string, which func(*csr) bool) {
	for _, c := range e.placedIn(p) {
		if which(c) {
			e.evict(c, p, why)
		}
	}
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
	uses := func(f *feed) bool { return f.cell == cell }
	for _, o := range t.own(omis.ClassCSR) {
		c := o.(*csr)
		for p, s := range c.resting {
			if slices.ContainsFunc(s.placed.feeds, uses) {
				e.forget(c, p)
			}
		}
		for p, s := range maps.Clone(c.subs) {
			if s.placed != nil && slices.ContainsFunc(s.placed.feeds, uses) {
				e.evict(c, p, string(token)+" does not exist any more")
			}
		}
	}
	e.unkeep(cell)
}

// trap has the monitor execute a request's actions, and says why nothing is cheaper.
func (e *Engine) trap(s *subscription, why string) error {
	e.makeWay(s.csr, s.proc)
	if s.csr.times {
		s.proc.node().calibrate(trapped) // what is measured is corrected as it is measured
	}
	s.placement = s.csr.placement.because(why)
	if s.placement.local {
		s.local = newLocalList(s.csr)
	}
	w := s.csr.event.watch
	if isDense(w.Event) {
		w.Threads = e.reg.tids(s.only)
	}
	var err error
	s.point, err = e.pointAt(s.proc, w, s)
	return err
}

// reason is an error in the words of a placement.
func reason(err error) string {
	var r *omis.Refusal
	if errors.As(err, &r) {
		return r.Why
	}
	return err.Error()
}

// where is the placement of a request: where it runs or, while it is disabled, would
// run now. Of several processes the dearest one counts.
func (e *Engine) where(c *csr) Placement {
	all := make([]Placement, 0, len(c.subs))
	for _, s := range c.subs {
		all = append(all, s.proc.node().priced(s.where(), c.times))
	}
	if len(c.subs) == 0 && c.event.source.kind != 0 {
		for _, t := range c.targets() {
			all = append(all, e.wouldBe(c, t))
		}
	}
	if len(all) == 0 {
		return c.placement
	}
	return slices.MaxFunc(all, func(a, b Placement) int {
		switch trapA, trapB := a.Name == trapped, b.Name == trapped; {
		case trapA != trapB && trapA:
			return 1
		case trapA != trapB:
			return -1
		}
		return int(a.Cost - b.Cost)
	})
}

// wouldBe is where a request would run in a process.
func (e *Engine) wouldBe(c *csr, t target) Placement {
	p, err := e.placingOf(c, t)
	if err == nil {
		verdicts, errs := p.placer.Judge([]omis.Placing{{Watch: p.watch, Program: p.program}})
		if err = errs[0]; err == nil {
			return t.proc.node().priced(placementOf(verdicts[0]), c.times)
		}
	}
	return t.proc.node().priced(c.placement.because(reason(err)), c.times)
}
