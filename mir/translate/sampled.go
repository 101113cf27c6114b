package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/program"
)

// Times can be sampled: the monitor counts all executions of the region, and times one in so
// many. All statistics except the sum cover only the timed executions. The sum is an estimate
// for all executions, with its standard error.

// Sampled has the counts of all executions and the estimated sum, if only some are timed;
// otherwise it is zero.
type Sampled struct {
	Begun, Timed int64
	Unended      int64   // executions that were chosen to be timed, and have no end
	Sum          float64 // estimated, of the covered executions, in nanoseconds
	Covered      int64   // executions in threads with at least one timed execution
}

func (s Sampled) plus(o Sampled) Sampled {
	return Sampled{s.Begun + o.Begun, s.Timed + o.Timed, s.Unended + o.Unended, s.Sum + o.Sum, s.Covered + o.Covered}
}

// estimate returns the estimated sum of all executions. It assumes that executions in threads
// without a timed one take as long as the others.
func (s Sampled) estimate() float64 {
	if s.Covered == 0 {
		return 0
	}
	return s.Sum * float64(s.Begun) / float64(s.Covered)
}

// deviation returns the standard error of the estimate, in nanoseconds. For n chosen executions
// of m with variance s², it is m·√(s²/n·(1−n/m)). A chosen one without an end adds 0 to the sum. It
// is unknown for fewer than two timed executions, unless these are all.
func (s Stats) deviation() (v float64, ok bool) {
	chosen := s.N + s.Sampled.Unended
	n := float64(chosen)
	switch {
	case s.N > 0 && s.Sampled.Timed == s.Sampled.Begun:
		return 0, true
	case s.N < 2 || s.Sum == program.Uint128{}:
		return 0, false
	}
	mean := s.Sum.Float() / n
	m := s.Sampled.estimate() / mean
	variance := program.SquaredDeviations(uint64(chosen), s.Sum, s.Squares) / (n - 1)
	return m * math.Sqrt(variance/n*max(1-n/m, 0)), true
}

// sample returns the sample for the document, nil if all executions were timed.
func (s Stats) sample(u unit) *mir.Sample {
	if s.Sampled.Begun == 0 {
		return nil
	}
	d := &mir.Sample{Count: s.Sampled.Begun, Timed: s.Sampled.Timed}
	if s.Sampled.Covered > 0 {
		d.Sum = u.rounded(s.Sampled.estimate())
	}
	if v, ok := s.deviation(); ok {
		d.Error = u.rounded(v)
	}
	return d
}

// sampling refuses to sample anything but times of a region.
func (p *Plan) sampling(r *mir.InstrRequest) Errors {
	switch {
	case r.OneIn == 0 || p.timesExecutions():
		return nil
	case r.Region == nil:
		return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "sample 1/%d: only executions of a region are sampled; without a region all is measured, leave \"sample\" out", r.OneIn)}
	}
	return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "sample 1/%d: only what is measured at both ends of an execution is sampled; add another metric, such as WC_TIME, or leave \"sample\" out: what is counted is counted each time", r.OneIn)}
}

// createTimer returns the action that creates a timer with a clock, "" for the default one.
func createTimer(clock string, oneIn int64, spread bool) string {
	named := cmp.Or(clock, "ordered")
	switch {
	case spread:
		return fmt.Sprintf(`pa_timer_create4(%q,%d,"histogram")`, named, max(oneIn, 1))
	case oneIn > 0:
		return fmt.Sprintf("pa_timer_create3(%q,%d)", named, oneIn)
	case clock == "":
		return "pa_timer_create()"
	}
	return fmt.Sprintf("pa_timer_create2(%q)", clock)
}

// readTimer returns the actions that read a timer by threads: also the estimates if it
// samples, and the histogram if percentiles are requested.
func (p *Plan) readTimer(t omis.Token, exact bool) []string {
	as := []string{call("pa_timer_read", t)}
	if exact {
		as[0] = fmt.Sprintf("pa_timer_exact([%s],0)", t)
	}
	if p.OneIn > 0 {
		as = append(as, fmt.Sprintf("pa_timer_estimate([%s],0)", t))
	}
	if len(p.Percent) > 0 {
		as = append(as, readHistogram(t))
	}
	return as
}

// exact reports whether a variance is computed: it needs the sums of timers in whole
// nanoseconds. The standard error of an estimate comes from a variance, too.
func (p *Plan) exact() bool { return p.OneIn > 0 || slices.Contains(p.Functions, mir.Variance) }

// sampleRows reads pa_timer_estimate: process and thread, followed by count, timed, last and
// sum, and values that pa_timer_read has, too.
func sampleRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_estimate", 11, func(vs []omis.Value) (s Stats) {
		s.Sampled.Begun, _ = vs[0].Int64()
		s.Sampled.Timed, _ = vs[1].Int64()
		s.Sampled.Unended, _ = vs[7].Int64()
		if s.Sampled.Timed > 0 {
			seconds, _ := vs[3].Number()
			s.Sampled.Sum, s.Sampled.Covered = seconds*1e9, s.Sampled.Begun
		}
		return s
	})
}

// withSamples adds the counts of all executions to the rows of threads.
func withSamples(timed, all []row) []row {
	return withMore(timed, all, func(s *Stats, more Stats) { s.Sampled = more.Sampled })
}
