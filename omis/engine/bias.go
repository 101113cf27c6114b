package engine

import (
	"maps"
	"math"
	"slices"

	"mirador/omis/program"
	"mirador/omis/service"
)

// What an interval contains of the cost of the very probes that measure it is known,
// and taken off when the interval is read: see program.Cost.

// edge is where programs open or close the intervals of a feed.
type edge struct {
	do              program.Operation
	placement, kind string
}

// edges notes where a program opens and closes intervals.
func (in *inPlace) edges(p program.Program) {
	v := in.Verdict()
	for i, op := range p {
		if op.Times() {
			f := in.feeds[i]
			f.mu.Lock()
			f.edges[edge{op.Do, v.Name, v.Kind}] = true
			f.mu.Unlock()
		}
	}
}

// bias is what each interval of the feed contains of the cost of its probes. Where they
// differ, the least is meant: too much must not be taken off. It is 0 before the placement
// was calibrated, and while the cost is rough.
func (f *feed) bias() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	begins, ends := math.Inf(1), math.Inf(1)
	n := f.proc.node()
	for at := range f.edges {
		cost, ok := n.cost(at.placement, at.kind)
		switch {
		case !ok || cost.Rough:
			return 0
		case at.do == program.OpStart:
			begins = min(begins, cost.After)
		default:
			ends = min(ends, cost.Before)
		}
	}
	if math.IsInf(begins+ends, 0) {
		return 0
	}
	return int64(math.Round(program.Cost{After: begins}.Bias(program.Cost{Before: ends})))
}

// calibrate waits until bias knows.
func (f *feed) calibrate() {
	f.mu.Lock()
	edges := slices.Collect(maps.Keys(f.edges))
	f.mu.Unlock()
	for _, at := range edges {
		f.proc.node().calibrate(at.placement)
	}
}

// times tells whether an action opens or closes intervals.
func (s step) times() bool {
	if s.do.compile == nil {
		return false
	}
	op, err := s.do.compile(service.Arguments(s.args))
	return err == nil && op.Times()
}

// bias is the least that is taken off the intervals of a request.
func (c *csr) bias() (least int64) {
	first := true
	for _, s := range c.subs {
		if s.placed == nil || !c.times {
			continue
		}
		for _, f := range s.placed.feeds {
			if f.cell.Kind().HasIntervals() {
				if b := f.bias(); first || b < least {
					least, first = b, false
				}
			}
		}
	}
	return least
}
