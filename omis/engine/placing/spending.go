package placing

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// The cost of requests is computed: from the number of executions, which follows from what programs count,
// and the cost of one execution on this machine.

// Cost returns the cost of an occurrence at a kind of place. It returns false if that was not measured.
func (n *Machine) Cost(placement, kind string) (program.Cost, bool) {
	if c := n.Can.Costs; c != nil {
		return c.Cost(placement, kind)
	}
	return program.Cost{}, false
}

// Calibrate measures a placement, and returns when that is done.
func (n *Machine) Calibrate(placement string) {
	if c := n.Can.Costs; c != nil {
		c.Calibrate(placement)
	}
}

// want asks for the measurement of a placement. It does not wait if another goroutine measures all placements.
func (n *Machine) want(placement string) {
	if c := n.Can.Costs; c != nil {
		c.Want(placement)
	}
}

// priced returns a placement with the measured cost of an occurrence on the node, if it was measured.
func (n *Machine) priced(p omis.Placement, times bool) omis.Placement {
	cost, ok := n.Cost(p.Name, p.Kind)
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

// count says which step of a program shows the number of its executions: by the feed of the step, which
// other programs may use too.
type count struct {
	feed *feed
	op   program.Operation
	sum  float64 // the program's executions; feed.mu guards it
}

// tally counts the executions of all programs that perform the same operation on a feed.
type tally struct {
	users   []*count
	each    int64   // what one execution adds to Row.Value
	mixed   bool    // programs add different values, so their executions cannot be counted
	past    uint64  // executions before the last reset of the feed
	settled float64 // executions that were distributed to users
}

// counting chooses the step of a program that shows its executions, and adds the program to the tally.
// Programs that only add different values to one sum cannot be counted.
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

// adds returns what a step adds to the Value of a row.
func adds(op program.Op) int64 {
	switch op.Do {
	case program.OpAdd:
		return op.Value
	case program.OpTrace:
		return 1
	}
	return 0
}

// enter adds a program to the tally. Earlier executions were of other programs.
func (c *count) enter() {
	if c.feed == nil {
		return
	}
	var now [program.Operations]uint64
	if c.feed.users > 1 || c.feed.recalled {
		now, _ = c.feed.executions() // otherwise the store is new
	}
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	t := &c.feed.tallies[c.op]
	t.share(now[c.op])
	t.users = append(t.users, c)
}

// share distributes executions since the last call equally to the programs.
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

// executions returns the number of executions of the program. ok is false if it cannot be determined.
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

// leave removes a program from the tally.
func (c *count) leave() {
	if c.feed == nil {
		return
	}
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	t := &c.feed.tallies[c.op]
	t.users = slices.DeleteFunc(t.users, func(other *count) bool { return other == c })
}

// executions returns the numbers of executions that the store shows, by operation.
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
		n[program.OpTake] += uint64(r.Count)
	}
	for _, op := range []program.Operation{program.OpAdd, program.OpTrace} {
		if each := f.tallies[op].each; each != 0 {
			n[op] = uint64(max(added/each, 0))
		}
	}
	return n, nil
}

// spent returns what a subscription has cost so far.
func (s *Subscription) spent() omis.Spending {
	if s.placed == nil {
		return s.byMonitor()
	}
	n, ok := s.placed.count.executions()
	p := s.Proc.machine().priced(s.placement, s.placed.times)
	spent := omis.Spending{Hits: uint64(n + 0.5), Inside: n * p.Cost, Rough: !p.Measured, Uncounted: !ok}
	if s.Request.Watch.When != node.Always {
		spent.Uncounted = true // nothing counts the hits at which the condition does not hold
	}
	// The kernel interrupts the thread once for all programs at a place. The additional cost of each
	// program was not measured.
	if together := s.Proc.together[s.spot()]; together > 1 && !s.placed.restsFree() {
		spent.Inside, spent.Rough = spent.Inside/float64(together), true
	}
	for _, f := range slices.Compact(slices.Clone(s.placed.feeds)) {
		spent.Lost += f.store.Lost()
	}
	return spent
}

// spot is a place of programs: an address, and the index of the placement.
type spot struct {
	addr  uint64
	level int
}

func (s *Subscription) spot() spot { return spot{s.at(), s.placed.level} }

// crowd adds n to the number of programs at the place of a subscription.
func (p *Process) crowd(s *Subscription, n int) {
	if s.Request.Watch.Event != node.EventReachedAddr {
		return
	}
	if p.together == nil {
		p.together = make(map[spot]int)
	}
	if p.together[s.spot()] += n; p.together[s.spot()] == 0 {
		delete(p.together, s.spot())
	}
}

// byMonitor returns what a subscription costs that the monitor executes. It is rough, because how long a
// thread is held depends on what else the machine does.
func (s *Subscription) byMonitor() (spent omis.Spending) {
	if s.held == nil {
		return spent
	}
	for how, n := range s.held.Hits() {
		p := s.placement
		p.Kind = how
		p = s.Proc.machine().priced(p, s.Request.Times)
		spent.Hits += n.Count
		spent.Outside += n.Parts * p.Cost
		spent.Rough = true
	}
	return spent
}

// where returns where a subscription is executed. If threads are held, its kind is the way in which most of
// them were held.
func (s *Subscription) where() omis.Placement {
	p := s.placement
	if s.held == nil {
		return p
	}
	most := uint64(0)
	for how, n := range s.held.Hits() {
		if n.Count > most {
			p.Kind, most = how, n.Count
		}
	}
	return p
}

// addSpent adds what a subscription has cost to the request, because it ends.
func (c *Request) addSpent(s *Subscription) {
	spent := s.spent()
	c.spent = c.spent.Plus(spent)
	if s.placed != nil {
		s.placed.count.leave()
	}
}

// Spent returns what requests have cost the processes that they were enabled in.
func (x *Placing) Spent(requests []*Request) (all omis.Spending) {
	observed := make(map[*Process]float64)
	for _, c := range requests {
		all = all.Plus(c.spent)
		for _, subs := range []map[*Process]*Subscription{c.Subs, c.resting} {
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
	return all
}

// Calibrator returns a function that has the placements of requests calibrated. It may take long, so it is
// called without the lock.
func (x *Placing) Calibrator(requests []*Request) (calibrate func()) {
	type where struct {
		node      *Machine
		placement string
	}
	all := make(map[where]bool)
	for _, c := range requests {
		for p, s := range c.Subs {
			all[where{p.machine(), s.placement.Name}] = true
		}
	}
	return func() {
		for w := range all {
			w.node.want(w.placement)
		}
	}
}
