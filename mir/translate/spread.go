package translate

import (
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/program"
)

// A percentile covers all intervals of its value, of one thread or of several. So the plan
// reads the histograms of threads and merges them here: the percentiles of several threads
// cannot be computed from the percentiles of each thread.

// joined merges two distributions, each of which may be empty.
func joined(a, b program.Distribution) program.Distribution {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return a.Join(b)
}

// spread returns the requested percentiles, nil if none are requested or there are no times.
func (s Stats) spread(percent []float64, u unit) *mir.Spread {
	if len(percent) == 0 || s.Spread.Count() == 0 {
		return nil
	}
	spread := &mir.Spread{Percentiles: make([]mir.Percentile, len(percent))}
	for i, p := range percent {
		middle, half := between(s.Spread.Percentile(p))
		spread.Percentiles[i] = mir.Percentile{Of: p, Value: u.exact(program.Uint128{Lo: middle}), Error: u.exact(program.Uint128{Lo: half})}
	}
	return spread
}

// between returns the middle of two durations, and its largest distance from them, in whole
// nanoseconds like all written times.
func between(least, most uint64) (middle, half uint64) {
	half = (most-least)/2 + (most-least)%2
	return least + half, half
}

// spreads reports whether a metric without a region has percentiles: of the times between events that it adds up.
func spreads(p *Plan, m Metric) bool {
	return len(p.Percent) > 0 && m.source == betweenEvents && p.Gains.ends == nowhere
}

// readHistogram returns the action that reads the histogram of a timer by threads.
func readHistogram(t omis.Token) string { return fmt.Sprintf("pa_timer_histogram([%s],0)", t) }

// spreading refuses percentiles of anything but times.
func (p *Plan) spreading(r *mir.InstrRequest) Errors {
	switch {
	case len(p.Percent) == 0 || p.timesExecutions() || slices.ContainsFunc(p.Metrics, func(m Metric) bool { return spreads(p, m) }):
		return nil
	case r.Region == nil:
		return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "percentiles %s: without a region only what lasts from one event to another has them; add a metric such as SYSCALL_TIME or WAIT_TIME, or a codeRegion, or leave \"percentiles\" out", inWords(p.Percent))}
	}
	return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "percentiles %s: only what is measured at both ends of an execution has them; add another metric, such as WC_TIME, or leave \"percentiles\" out", inWords(p.Percent))}
}

// inWords formats percentages as in the request.
func inWords(percent []float64) string {
	words := make([]string, len(percent))
	for i, p := range percent {
		words[i] = mir.Decimal(p)
	}
	return strings.Join(words, " ")
}

// spreadRows reads pa_timer_histogram: process and thread, followed by a number and the
// buckets. A bucket is the least and the greatest duration in seconds, and a count.
func spreadRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_histogram", 4, func(vs []omis.Value) (s Stats) {
		for l := vs[1].List; len(l) >= 3; l = l[3:] {
			least, most := l[0].Nanoseconds(), l[1].Nanoseconds()
			if n, _ := l[2].Int64(); n > 0 && least <= most {
				s.Spread = append(s.Spread, program.Bucket{Least: least, Most: most, Count: uint64(n)})
			}
		}
		return s
	})
}

// withSpread adds the distributions to the rows of threads.
func withSpread(timed, spread []row) []row {
	return withMore(timed, spread, func(s *Stats, more Stats) { s.Spread = more.Spread })
}
