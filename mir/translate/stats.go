package translate

import (
	"math"

	"mirador/mir"
	"mirador/omis/program"
)

// Stats summarizes measured values, in the unit of the metric.
type Stats struct {
	N                   int64
	Last, Sum, Min, Max float64

	// Mean is the arithmetic mean, and Squares the sum of the squared differences from it. The
	// sum of the squares themselves is not enough: subtracting the square of the mean cancels
	// a variance that is small compared to the values.
	Mean, Squares float64

	// Exact has the sums of all N values, if they were read so; then the variance has no
	// rounding error at all.
	Exact Exact

	Sampled Sampled              // if only some executions are timed
	Spread  program.Distribution // if percentiles are requested
}

// Add adds a value.
func (s *Stats) Add(v float64) {
	s.Merge(Stats{N: 1, Last: v, Sum: v, Mean: v, Min: v, Max: v})
}

// summed returns the statistics of n values from their sums. The variance has the precision of
// the sum of squares.
func summed(n int64, sum, squares float64) Stats {
	mean := sum / float64(n)
	return Stats{N: n, Sum: sum, Mean: mean, Squares: max(squares-sum*mean, 0)}
}

// Exact has sums of times in whole nanoseconds.
type Exact struct {
	N            int64
	Sum, Squares program.Uint128
}

func (e Exact) plus(o Exact) Exact {
	return Exact{e.N + o.N, e.Sum.Add(o.Sum), e.Squares.Add(o.Squares)}
}

// squaredDeviations returns the sum of the squared differences from the mean.
func (s Stats) squaredDeviations() float64 {
	const msPerNs = 1e-6
	if s.Exact.N != s.N {
		return s.Squares
	}
	return program.SquaredDeviations(uint64(s.N), s.Exact.Sum, s.Exact.Squares) * msPerNs * msPerNs
}

// Merge adds the values of o, as if they were measured after those of s.
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
	difference := o.Mean - s.Mean
	s.Mean += difference * m / (n + m)
	s.Exact = s.Exact.plus(o.Exact)
	s.Squares += o.Squares + difference*difference*n*m/(n+m)
	s.N += o.N
	s.Last = o.Last
	s.Sum += o.Sum
	s.Min = math.Min(s.Min, o.Min)
	s.Max = math.Max(s.Max, o.Max)
}

// Of returns a statistic; ok is false if there are no values. The variance is that of the
// whole population, because every value was measured.
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
		return s.squaredDeviations() / n, true
	}
	return s.Last, true
}
