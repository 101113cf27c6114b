package translate

import (
	"cmp"
	"fmt"
	"math"

	"mirador/mir"
	"mirador/omis"
)

// Times can be sampled: all executions of the region are counted, and one in so many is
// timed. What statistics there are is of those that were timed, but for the sum, which is
// that of all: it is estimated, with its standard error.

// Sampled is what is known of all executions where only some are timed; nothing where all
// are.
type Sampled struct {
	Begun, Timed int64
	Sum          float64 // of those in told, as estimated
	told         int64   // how many began in the threads of which at least one was timed
}

func (s Sampled) plus(o Sampled) Sampled {
	return Sampled{s.Begun + o.Begun, s.Timed + o.Timed, s.Sum + o.Sum, s.told + o.told}
}

// estimate is the sum of all executions. Those of threads of which none was timed took
// what the others took.
func (s Sampled) estimate() float64 {
	if s.told == 0 {
		return 0
	}
	return s.Sum * float64(s.Begun) / float64(s.told)
}

// deviation is the standard error of the estimate: with n that were timed out of m, and s²
// as their variance, it is m·√(s²/n·(1−n/m)). It cannot be told of fewer than two, unless
// they are all that there were.
func (s Stats) deviation() (v float64, ok bool) {
	n := float64(s.N)
	switch {
	case s.N > 0 && s.Sampled.Timed == s.Sampled.Begun:
		return 0, true
	case s.N < 2 || s.Sum == 0:
		return 0, false
	}
	mean := s.Sum / n
	m := s.Sampled.estimate() / mean
	variance := s.Squares / (n - 1)
	return m * math.Sqrt(variance/n*max(1-n/m, 0)), true
}

// sample is what the document says of it, nil where nothing was sampled.
func (s Stats) sample() *mir.Sample {
	if s.Sampled.Begun == 0 {
		return nil
	}
	d := &mir.Sample{Count: s.Sampled.Begun, Timed: s.Sampled.Timed}
	if s.Sampled.told > 0 {
		d.Sum = decimal(s.Sampled.estimate(), mir.Sum)
	}
	if v, ok := s.deviation(); ok {
		d.Error = decimal(v, mir.Sum)
	}
	return d
}

// sampling refuses to sample what is no time of a region.
func (p *Plan) sampling(r *mir.InstrRequest) Errors {
	switch {
	case r.OneIn == 0 || p.Times() || p.TimesCPU():
		return nil
	case r.Region == nil:
		return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "sample 1/%d: only times of a region are sampled, WC_TIME and CPU_TIME; without a region all is measured, leave \"sample\" out", r.OneIn)}
	}
	return Errors{Errorf(CannotBeDone, r.Metrics[0].Pos, "sample 1/%d: only times are sampled; add WC_TIME or CPU_TIME, or leave \"sample\" out: what is counted is counted each time", r.OneIn)}
}

// createTimer makes a timer of some clock, "" for the usual one.
func (p *Plan) createTimer(clock string) string {
	named := cmp.Or(clock, "ordered")
	switch {
	case len(p.Percent) > 0:
		return fmt.Sprintf(`pa_timer_create4(%q,%d,"histogram")`, named, max(p.OneIn, 1))
	case p.OneIn > 0:
		return fmt.Sprintf("pa_timer_create3(%q,%d)", named, p.OneIn)
	case clock == "":
		return "pa_timer_create()"
	}
	return fmt.Sprintf("pa_timer_create2(%q)", clock)
}

// readTimer asks for what a timer has measured, by threads; one that samples also for what
// follows from it, and where percentiles are wanted for its histogram.
func (p *Plan) readTimer(t omis.Token) []string {
	as := []string{call("pa_timer_read", t)}
	if p.OneIn > 0 {
		as = append(as, fmt.Sprintf("pa_timer_estimate([%s],0)", t))
	}
	if len(p.Percent) > 0 {
		as = append(as, fmt.Sprintf("pa_timer_histogram([%s],0)", t))
	}
	return as
}

// sampleRows reads pa_timer_estimate: behind process and thread stand count, timed, last
// and sum, and more that pa_timer_read says too.
func sampleRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_estimate", 11, func(vs []omis.Value) (s Stats) {
		s.Sampled.Begun, _ = vs[0].Int64()
		s.Sampled.Timed, _ = vs[1].Int64()
		if s.Sampled.Timed > 0 {
			s.Sampled.Sum, s.Sampled.told = ms(vs[3]), s.Sampled.Begun
		}
		return s
	})
}

// withSamples adds to the rows of threads what is known of all their executions.
func withSamples(timed, all []row) []row {
	return withMore(timed, all, func(s *Stats, more Stats) { s.Sampled = more.Sampled })
}
