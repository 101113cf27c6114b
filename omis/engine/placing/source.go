package placing

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A timer may have another cell as its clock, its source: an interval is what the source gained for the
// thread. A program that reads a source must run in the placement of the programs that change it, because a
// placement reads only its own stores. The monitor reads all stores. So if a request that changes a source
// moves, the monitor executes the requests that read the source. All functions of this file want the lock
// held by their caller.

// sourcesOf returns the cells that a request reads as clocks of its timers.
func sourcesOf(c *Request) (list []service.Cell) {
	for _, cell := range c.Owner.Intervals() {
		if timed, ok := cell.(service.Clocked); ok && timed.Source() != nil {
			list = append(list, timed.Source())
		}
	}
	return list
}

// readsSources reports whether programs of a placement can read sources.
func readsSources(placer program.Placer) bool {
	r, able := placer.(program.SourceReader)
	return able && r.ReadsSources()
}

// readersLast sorts candidates so that those that read sources are last: whether a source can be read depends on
// where the requests that change it are executed.
func readersLast(list []*candidate) {
	reads := func(k *candidate) int { return min(len(sourcesOf(k.Request)), 1) }
	slices.SortStableFunc(list, func(a, b *candidate) int { return reads(a) - reads(b) })
}

// reads reports whether the program reads a cell.
func (in *inPlace) reads(cell service.Cell) bool {
	return slices.ContainsFunc(in.sources, func(f *feed) bool { return f.cell == cell })
}

// tie counts the cells that a program reads, by 1 when it is placed and by -1 when it is removed.
func (p *Process) tie(in *inPlace, by int) {
	for _, f := range in.sources {
		if p.sources == nil {
			p.sources = make(map[service.Cell]int)
		}
		if p.sources[f.cell] += by; p.sources[f.cell] == 0 {
			delete(p.sources, f.cell)
		}
	}
}

// checkSources refuses programs that read what others change in another placement, and programs that change
// what cannot be read in this placement.
func (r *round) checkSources(list []*candidate) []error {
	errs := make([]error, len(list))
	for i, k := range list {
		errs[i] = r.checkSource(k)
	}
	return errs
}

func (r *round) checkSource(k *candidate) error {
	for _, s := range k.steps {
		cell, able := ofTool(s.Cell).(service.Sourced)
		switch {
		case able && cell.IsSource() && !readsSources(r.placer):
			return Declined("a timer reads what it counts, which is not possible there")
		case s.Source == nil:
			continue
		case !readsSources(r.placer):
			return Declined("programs there read nothing that others count")
		}
		for _, c := range r.changers(k, s.Source) {
			if c != k.Request && !r.has(c, k.Proc) {
				return evictedBySource(c)
			}
		}
	}
	return nil
}

// changers returns the requests that change a cell, and are executed in the process or about to be.
func (r *round) changers(k *candidate, cell service.Cell) []*Request {
	if r.changing == nil {
		r.changing = make(map[service.Cell][]*Request)
		for _, c := range k.Request.Tool.Requests() {
			if !c.runsIn(k.Proc) && !r.isFresh(c) {
				continue
			}
			for cell := range c.Owner.Changes() {
				r.changing[cell] = append(r.changing[cell], c)
			}
		}
	}
	return r.changing[cell]
}

// isFresh reports whether a request is about to be executed.
func (r *round) isFresh(c *Request) bool {
	return slices.ContainsFunc(r.all, func(b *bond) bool { return b.has(c) })
}

func (b *bond) has(c *Request) bool {
	return slices.ContainsFunc(b.members, func(k *candidate) bool { return k.Request == c })
}

// has reports whether a request runs in the placement of the round, as far as is known.
func (r *round) has(c *Request, p *Process) bool {
	for _, b := range r.all {
		if b.has(c) {
			return b.level == r.level
		}
	}
	s := c.Subs[p]
	return s != nil && s.placed != nil && s.placed.level == r.level
}

// evictReaders evicts the programs that read what a request changes, if they are not in the placement in which
// the request is executed from now on.
func (x *Placing) evictReaders(c *Request, p *Process, level int) {
	if len(p.sources) == 0 {
		return
	}
	for cell := range c.Owner.Changes() {
		if p.sources[cell] == 0 {
			continue
		}
		x.evict(p, evictedBySource(c),
			p.programsThat(func(s *Subscription) bool {
				return s.Request != c && s.placed.level != level && s.placed.reads(cell)
			})...)
	}
}

// evictBlind evicts the programs that change what a request reads, if the monitor, which executes the request,
// cannot read their stores.
func (x *Placing) evictBlind(c *Request, p *Process) {
	for _, cell := range sourcesOf(c) {
		x.evict(p, Hinders([]*Request{c}, "%s reads what it changes, which is not possible there", c.Token),
			p.programsThat(func(s *Subscription) bool {
				return !readsSources(s.placed.placer) && slices.ContainsFunc(s.placed.feeds, func(f *feed) bool { return f.cell == cell })
			})...)
	}
}

// canRead reports why the monitor cannot read the sources of a request when it holds a thread: it learns of the
// scheduling of threads later.
func (c *Request) canRead(p *Process) error {
	for _, source := range sourcesOf(c) {
		for _, other := range c.Tool.Requests() {
			s := other.Subs[p]
			if s == nil || s.held == nil || !isScheduling(other.Watch.Event) {
				continue
			}
			for cell := range other.Owner.Changes() {
				if cell == source {
					return omis.Errorf(omis.UnsupportedService,
						"%s, which changes what the timer reads, is executed by the monitor, which learns of the scheduling of threads too late for it: %s", other.Token, reasons(s.refused))
				}
			}
		}
	}
	return nil
}

func isScheduling(kind node.EventKind) bool {
	return isPlaceable(kind) && kind != node.EventReachedAddr && !IsSysCall(kind)
}

// RawRows: see service.RawReader.
func (f *feed) RawRows() ([]service.Row, error) {
	rows, err := f.store.Rows()
	list, last := make([]service.Row, len(rows)), named{}
	for i := range rows {
		list[i] = service.Row{Proc: f.Proc.Token, Thread: last.threadOf(f.Proc, &rows[i]), Row: rows[i]}
	}
	return list, err
}
