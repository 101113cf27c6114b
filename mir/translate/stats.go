package translate

import (
	"math"

	"mirador/mir"
	"mirador/omis"
)

// Stats sums up values that were measured, in the metric's own unit.
type Stats struct {
	N                   int64
	Last, Sum, Min, Max float64

	// Mean is the arithmetic mean, and Squares the sum of the squared differences from it. The
	// sum of the squares themselves would not do: a variance that is small beside the values
	// is lost when the square of their mean is taken off.
	Mean, Squares float64

	Sampled Sampled           // where N are only some of those there were
	Spread  omis.Distribution // where percentiles are wanted
}

// Add takes one more value.
func (s *Stats) Add(v float64) {
	s.Merge(Stats{N: 1, Last: v, Sum: v, Mean: v, Min: v, Max: v})
}

// summed returns the statistics of n values of which sums are known. The variance has the
// precision that the sum of the squares has.
func summed(n int64, sum, squares float64) Stats {
	mean := sum / float64(n)
	return Stats{N: n, Sum: sum, Mean: mean, Squares: max(squares-sum*mean, 0)}
}

// Merge takes the values that o sums up, as if they had been measured after
// those of s.
func (s *Stats) Merge(o Stats) {
	o.Sampled = s.Sampled.plus(o.Sampled)
	s.Sampled = o.Sampled
	o.Spread = joined(s.Spread, o.Spread)
	s.Spread = o.Spread
	switch {
	case o.N == 0:
		return
	case s.N == 0:
		*s = o
		return
	}
	// The method of Welford, for groups of values (Chan, Golub and LeVeque 1979).
	n, m := float64(s.N), float64(o.N)
	apart := o.Mean - s.Mean
	s.Mean += apart * m / (n + m)
	s.Squares += o.Squares + apart*apart*n*m/(n+m)
	s.N += o.N
	s.Last = o.Last
	s.Sum += o.Sum
	s.Min = math.Min(s.Min, o.Min)
	s.Max = math.Max(s.Max, o.Max)
}

// Of is a statistic of the values; ok is false where there are none. The
// variance is that of the whole population: every value was measured, none
// stands for others.
func (s Stats) Of(f mir.Function) (v float64, ok bool) {
	if s.N == 0 {
		return 0, false
	}
	n := float64(s.N)
	switch f {
	case mir.Sum:
		if s.Sampled.Begun > 0 {
			return s.Sampled.estimate(), true
		}
		return s.Sum, true
	case mir.Average:
		return s.Sum / n, true
	case mir.Maximum:
		return s.Max, true
	case mir.Minimum:
		return s.Min, true
	case mir.Variance:
		return s.Squares / n, true
	}
	return s.Last, true
}
