package pa

import (
	"math"
	"math/rand/v2"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// mostOneIn is the greatest N for which a timer can time one interval in N.
const mostOneIn = 1_000_000

// sampler chooses the intervals of a thread that are timed: one, at random, of every
// oneIn that follow each other. So each interval has the same chance, including a
// thread's first, and a periodic one is not timed always or never.
type sampler struct {
	oneIn int64 // 1 or less: all are timed
	left  int64 // number of intervals up to the next timed one, inclusive; 0: choose anew
	rest  int64 // number of intervals after the timed one, before the sampler chooses anew
}

// chooses reports whether the interval that begins is to be timed.
func (s *sampler) chooses() bool {
	if s.oneIn <= 1 {
		return true
	}
	if s.left == 0 {
		at := rand.Int64N(s.oneIn)
		s.left, s.rest = s.rest+at+1, s.oneIn-1-at
	}
	s.left--
	return s.left == 0
}

// begun returns the number of intervals that began, timed or not.
func (r *row) begun() int64 { return r.chosen() + r.skipped }

// chosen returns the number of intervals that the sampler chose.
func (r *row) chosen() int64 { return r.count + r.unfinished + int64(len(r.open)) + r.away }

// each returns the number of intervals that a timed one stands for.
func (r *row) each() float64 {
	if r.skipped == 0 || r.chosen() == 0 {
		return 1
	}
	return float64(r.begun()) / float64(r.chosen())
}

// noEstimate replaces an error that cannot be estimated: from a single value the variance is
// unknown.
const noEstimate = -1

// deviation returns the standard error of the sum of all intervals, in seconds. If n of m
// intervals were timed, and s² is their variance, it is m·√(s²/n·(1−n/m)). As the
// timed intervals are spread evenly over time, the true error is not larger.
func (r *row) deviation() float64 {
	n, m := float64(r.count), float64(r.count)*r.each()
	switch {
	case r.skipped == 0:
		return 0
	case r.count < 2:
		return noEstimate
	}
	variance := program.SquaredDeviations(uint64(r.count), r.sum, r.squares) / 1e18 / (n - 1)
	return m * math.Sqrt(variance/n*(1-n/m))
}

// estimate appends the components of the row as append does, but estimated for all
// intervals that began. The last, the least and the greatest interval are of the timed
// ones.
func (r *row) estimate(list []omis.Value) []omis.Value {
	each := r.each()
	return append(list,
		omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.begun()), omis.Int(r.count),
		omis.Seconds(r.last), omis.Float(r.sum.Float()/1e9*each), omis.Float(r.squares.Float()/1e18*each),
		omis.Seconds(r.min), omis.Seconds(r.max), omis.Int(r.unfinished), omis.Float(r.deviation()))
}

// sampleServices returns the table rows of the services that read estimates.
func sampleServices() []service.Service {
	return []service.Service{{
		Name: "pa_timer_estimate", Action: estimateTimer, Class: classTimer, Kind: service.Information, Object: classTimer,
		Params: []service.Param{timers(), service.IntegerParam("level")}, Role: service.Read,
		Result: "struct { integer num; struct { token process; token thread; integer count; integer timed; floating last; floating sum; floating sumsq; floating min; floating max; integer unfinished; floating error; }* rows; }",
		Doc:    "return the number of intervals of timers that began and the number of those timed, and estimate from the latter, for all intervals, the sum and the sum of squares, with the standard error of the sum (-1 if fewer than two were timed); last, min, max and unfinished concern only the timed intervals; by threads (level 0), by processes (1) or in total (2), in seconds",
	}}
}

func createTimer3(c *service.Call) ([]omis.Value, error) {
	t, err := sampledTimer(c)
	if err != nil {
		return nil, err
	}
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}

// sampledTimer makes a timer according to the parameters clock and one_in.
func sampledTimer(c *service.Call) (*timer, error) {
	clock, err := clockOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	t := newTimer()
	t.setClock(clock, c.Args[0].Str)
	return t, t.sample(c.Args[1])
}

// sample sets the parameter one_in.
func (t *timer) sample(v omis.Value) error {
	oneIn, ok := v.Int64()
	if !ok || oneIn < 1 || oneIn > mostOneIn {
		return omis.Errorf(omis.ParameterError, "a timer times one in 1 to %d intervals", mostOneIn)
	}
	t.oneIn = oneIn
	return nil
}

// configure sets the parameters one_in and keep.
func (t *timer) configure(oneIn, keep omis.Value) error {
	if err := t.sample(oneIn); err != nil {
		return err
	}
	switch keep.Str {
	case "sums":
	case "histogram":
		t.spread = true
	default:
		return omis.Errorf(omis.ParameterError, "a timer cannot keep %q, only sums or histogram", keep.Str)
	}
	return nil
}

func estimateTimer(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*timer).rowValues(level, (*row).estimate)
}
