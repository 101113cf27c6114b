package engine

import (
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// What requests cost is computed, not measured: from how often they were executed,
// which the programs tell that count anyway, and from what one execution costs
// on this machine.

// cost of an occurrence at a kind of place; false where it was not measured.
func (n *machine) cost(placement, kind string) (program.Cost, bool) {
	if c := n.can.Costs; c != nil {
		return c.Cost(placement, kind)
	}
	return program.Cost{}, false
}

// calibrate has a placement measured, and waits for it.
func (n *machine) calibrate(placement string) {
	if c := n.can.Costs; c != nil {
		c.Calibrate(placement)
	}
}

// priced is the placement with what an occurrence costs on the node, where that was
// measured.
func (n *machine) priced(p omis.Placement, times bool) omis.Placement {
	cost, ok := n.cost(p.Name, p.Kind)
	switch {
	case !ok:
		return p
	case times && p.OneIn > 1:
		p.Cost = cost.Count + (cost.Time-cost.Count)/float64(p.OneIn)
	case times:
		p.Cost = cost.Time
	default:
		p.Cost = cost.Count
	}
	p.Measured = !cost.Rough
	return p
}

// count says where the executions of a program are counted: by the feed of one of its
// steps, of which other programs may be users too.
type count struct {
	feed *feed
	op   program.Operation
	sum  float64 // what is the program's for good; feed.mu guards it
}

// tally is what a feed knows of how often programs were executed that do one and the
// same with it.
type tally struct {
	users   []*count
	each    int64   // what an execution adds to Row.Value
	mixed   bool    // some add more than others: who did cannot be told
	past    uint64  // executions before the feed was reset
	settled float64 // executions that have been shared out
}

// counting chooses which step of a program tells how often it is executed, and enters
// the program there. Nobody counts those that only add different numbers.
func (in *inPlace) counting(p program.Program) {
	added := make(map[*feed]int64)
	loads := make(map[*feed]bool)
	for i, op := range p {
		f := in.feeds[i]
		added[f] += adds(op)
		loads[f] = loads[f] || op.Do == program.OpAdd && op.Load.IsLoaded()
	}
	for i, op := range p {
		f := in.feeds[i]
		f.mu.Lock()
		t := &f.tallies[op.Do]
		if loads[f] || !op.Times() && len(t.users) > 0 && t.each != added[f] {
			t.mixed = true
		}
		better := in.count.feed == nil || op.Do < in.count.op
		if better && (op.Times() || !t.mixed && added[f] != 0) {
			in.count = count{feed: f, op: op.Do}
		}
		t.each = added[f]
		f.mu.Unlock()
	}
	in.count.enter()
}

// adds is how much greater a step makes the Value of a row.
func adds(op program.Op) int64 {
	switch op.Do {
	case program.OpAdd:
		return op.Value
	case program.OpTrace:
		return 1
	}
	return 0
}

// enter puts a program on the tally. What was executed before was others.
func (c *count) enter() {
	if c.feed == nil {
		return
	}
	var now [program.Operations]uint64
	if c.feed.users > 1 || c.feed.recalled {
		now, _ = c.feed.executions() // else there is nothing in it
	}
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	t := &c.feed.tallies[c.op]
	t.share(now[c.op])
	t.users = append(t.users, c)
}

// share gives each of the programs an equal part of what was executed since the last
// time.
func (t *tally) share(now uint64) {
	more := float64(t.past+now) - t.settled
	if more <= 0 {
		return
	}
	t.settled += more
	for _, c := range t.users {
		c.sum += more / float64(len(t.users))
	}
}

// executions is how often the program was executed that has this count; ok is false
// where that cannot be told.
func (c *count) executions() (n float64, ok bool) {
	if c.feed == nil {
		return 0, false
	}
	now, err := c.feed.executions()
	if err != nil {
		return 0, false
	}
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	t := &c.feed.tallies[c.op]
	if t.mixed {
		return 0, false
	}
	t.share(now[c.op])
	return c.sum, true
}

// leave takes a program off the tally.
func (c *count) leave() {
	if c.feed == nil {
		return
	}
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	t := &c.feed.tallies[c.op]
	t.users = slices.DeleteFunc(t.users, func(other *count) bool { return other == c })
}

// executions are those that the store knows of, by what was done.
func (f *feed) executions() (n [program.Operations]uint64, err error) {
	rows, err := f.store.Rows()
	if err != nil {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var added int64
	for i := range rows {
		r := &rows[i]
		added += r.Value
		n[program.OpStart] += uint64(r.Count + r.Unfinished + r.Open + r.Skipped)
		n[program.OpStop] += uint64(r.Count + r.Skipped)
	}
	for _, op := range []program.Operation{program.OpAdd, program.OpTrace} {
		if each := f.tallies[op].each; each != 0 {
			n[op] = uint64(max(added/each, 0))
		}
	}
	return n, nil
}

// spent is what a request costs in a process since it was enabled there.
func (s *subscription) spent() omis.Spending {
	if s.placed == nil {
		return s.held()
	}
	n, ok := s.placed.count.executions()
	p := s.proc.node().priced(s.placement, s.placed.times)
	spent := omis.Spending{Hits: uint64(n + 0.5), Inside: n * p.Cost, Rough: !p.Measured, Uncounted: !ok}
	// The kernel interrupts the thread once for all programs at a place. What each adds to
	// that has not been measured.
	if together := s.proc.together[s.spot()]; together > 1 && !s.placed.restsFree() {
		spent.Inside, spent.Rough = spent.Inside/float64(together), true
	}
	for _, f := range slices.Compact(slices.Clone(s.placed.feeds)) {
		spent.Lost += f.store.Lost()
	}
	return spent
}

// spot is where a program stands: an address, and the index of its placement.
type spot struct {
	addr  uint64
	level int
}

func (s *subscription) spot() spot { return spot{s.at(), s.placed.level} }

// crowd counts a program at its place, or takes it off the count.
func (p *process) crowd(s *subscription, n int) {
	if s.csr.event.source.kind != node.EventReachedAddr {
		return
	}
	if p.together == nil {
		p.together = make(map[spot]int)
	}
	if p.together[s.spot()] += n; p.together[s.spot()] == 0 {
		delete(p.together, s.spot())
	}
}

// held is what it costs to have the monitor execute a request. It is known but roughly: how
// long a thread is held depends on what else the machine does.
func (s *subscription) held() (spent omis.Spending) {
	if s.point == nil {
		return spent
	}
	s.point.mu.Lock()
	defer s.point.mu.Unlock()
	for how, n := range s.hits {
		p := s.placement
		p.Kind = how
		p = s.proc.node().priced(p, s.csr.times)
		spent.Hits += n
		spent.Outside += s.parts[how] * p.Cost
		spent.Rough = true
	}
	return spent
}

// where is the placement of a request in a process; where threads are held, with the
// way in which they mostly were.
func (s *subscription) where() omis.Placement {
	p := s.placement
	if s.point == nil {
		return p
	}
	s.point.mu.Lock()
	defer s.point.mu.Unlock()
	for how, n := range s.hits {
		if n > s.hits[p.Kind] {
			p.Kind = how
		}
	}
	return p
}

// settle keeps what a request has cost in a process where it is not executed any more.
// The caller holds Engine.admin.
func (c *csr) settle(s *subscription) {
	spent := s.spent()
	c.spent = c.spent.Plus(spent)
	if s.placed != nil {
		s.placed.count.leave()
	}
}

// Spent is what requests have cost the processes that they were enabled in.
// Where their placements have not been calibrated, they are now.
func (t *Tool) Spent(requests []omis.Token) (all omis.Spending, err error) {
	t.calibrate(requests)
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	observed := make(map[*process]float64)
	for _, token := range requests {
		o, err := t.find(token)
		if err != nil {
			return all, err
		}
		c, ok := o.(*csr)
		if !ok {
			return all, omis.Errorf(omis.TypeMismatch, "%s is no conditional request", token)
		}
		all = all.Plus(c.spent)
		for _, subs := range []map[*process]*subscription{c.subs, c.resting} {
			for _, s := range subs {
				all = all.Plus(s.spent())
			}
		}
		for p, before := range c.observed {
			if first, ok := observed[p]; !ok || before < first {
				observed[p] = before
			}
		}
	}
	for p, before := range observed {
		all.CPU += p.cpu.time(p) - before
	}
	return all, nil
}

// calibrate has the placements of requests measured. It takes no lock meanwhile.
func (t *Tool) calibrate(requests []omis.Token) {
	type where struct {
		node      *machine
		placement string
	}
	all := make(map[where]bool)
	t.e.admin.Lock()
	for _, token := range requests {
		if o, err := t.find(token); err == nil {
			if c, ok := o.(*csr); ok {
				for p, s := range c.subs {
					all[where{p.node(), s.placement.Name}] = true
				}
			}
		}
	}
	t.e.admin.Unlock()
	for w := range all {
		w.node.calibrate(w.placement)
	}
}

// clock is how much CPU time a process has used, as far as is known.
type clock struct {
	mu   sync.Mutex
	ns   float64
	read time.Time
}

// fresh is how long what a clock said is true enough: thousands of requests may ask at
// the same time.
const fresh = time.Millisecond

// time reads the clock. That of a process that has ended stands still.
func (c *clock) time(p *process) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.read) < fresh {
		return c.ns
	}
	at := p.at()
	if info, err := at.node.ProcInfo(at.id, node.ProcTotalTime); err == nil {
		c.ns = float64(info.TotalTime)
	}
	c.read = time.Now()
	return c.ns
}
