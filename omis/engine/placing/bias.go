package placing

import (
	"maps"
	"math"
	"slices"

	"mirador/omis/program"
)

// An interval includes a part of the cost of the probes that measure it. This part is known (program.Cost),
// and is subtracted when the interval is read.

// edge is a kind of place where programs open or close the intervals of a feed.
type edge struct {
	do              program.Operation
	placement, kind string
}

// edges records where a program opens and closes intervals.
func (in *inPlace) edges(p program.Program) {
	v := in.Verdict()
	for i, op := range p {
		if i > 0 && p.Tells(i-1) && p[i-1].Do == program.OpStop && p[i-1].Clock.IsTime() {
			in.feeds[i].valuesOf(op.Mark, in.feeds[i-1])
		}
		if op.Times() && op.Clock.IsTime() {
			f := in.feeds[i]
			f.mu.Lock()
			f.edges[edge{op.Do, v.Name, v.Kind}] = true
			f.mu.Unlock()
		}
	}
}

// bias returns what each interval of the feed includes of the cost of its probes. If places differ, it is
// the least, so that never too much is subtracted. It is 0 until the placement is calibrated, and while the cost
// is rough.
func (f *feed) bias() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	begins, ends := math.Inf(1), math.Inf(1)
	n := f.Proc.machine()
	for at := range f.edges {
		cost, ok := n.Cost(at.placement, at.kind)
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

// calibrate has the placements calibrated that bias needs.
func (f *feed) calibrate() {
	f.mu.Lock()
	edges := slices.Collect(maps.Keys(f.edges))
	f.mu.Unlock()
	for _, at := range edges {
		f.Proc.machine().want(at.placement)
	}
}

// Bias returns the least that is subtracted from intervals of a request.
func (c *Request) Bias() (least int64) {
	first := true
	for _, s := range c.Subs {
		if s.placed == nil || !c.Times {
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
