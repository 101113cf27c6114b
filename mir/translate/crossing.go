package translate

import (
	"mirador/mir"
	"mirador/omis"
)

// A region may begin where one unit begins, and end where another one ends. An execution begins
// and ends in the same thread, or goroutine. Where a beginning follows a beginning, the earlier one has no end;
// where an end follows an end, the later one has no beginning. Neither has a value. The plan counts all
// beginnings and all ends, so that a measurement shows how many have none.

// crossing changes the plan so that it measures a region that ends in another unit.
func crossing(p *Plan, end *region) {
	p.Gains.crosses = true
	p.Region += " to " + end.name
}

// hasCounter reports whether the plan has a counter of executions.
func hasCounter(p *Plan) bool { return p.Counts() || p.Gains.crosses }

// starts and stops return the actions that open and close the intervals of timers.
func (g *Gains) starts(timers []omis.Token) []string {
	if g.crosses {
		return calls("pa_timer_begin", timers)
	}
	return calls("pa_timer_start", timers)
}

func (g *Gains) stops(timers []omis.Token) []string {
	if g.crosses {
		return calls("pa_timer_end", timers)
	}
	return calls("pa_timer_stop", timers)
}

// Paired has the numbers of beginnings and ends of a region from one unit to another.
type Paired struct{ Begun, Ended int64 }

// paired adds the beginnings and ends of an entity to the statistics of its executions.
func (rd *reading) paired(s Stats, i *Instance) Stats {
	if rd.crosses {
		s.Paired = Paired{int64(total(rd.counts, i, single(0)).Last), int64(total(rd.ends, i, single(0)).Last)}
	}
	return s
}

// sampleShown returns what a measurement document shows about the executions beside a value. It is nil
// unless the request asks for samples: the attributes are no part of MIR.
func sampleShown(p *Plan, s *Stats, metric int) *mir.Sample {
	switch {
	case !p.Gains.crosses || p.OneIn > 1:
		return s.sample(p.Metrics[metric].unit())
	case p.OneIn == 0 || s.Paired == (Paired{}):
		return nil
	}
	return &mir.Sample{Count: s.Paired.Begun, Timed: s.N, Unmatched: max(s.Paired.Ended-s.N, 0)}
}
