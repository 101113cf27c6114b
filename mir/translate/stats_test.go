package translate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
)

// naive computes a statistic from its definition.
func naive(f mir.Function, vs []float64) float64 {
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range vs {
		sum += v
		least, most = math.Min(least, v), math.Max(most, v)
	}
	mean := sum / float64(len(vs))
	switch f {
	case mir.Sum:
		return sum
	case mir.Average:
		return mean
	case mir.Maximum:
		return most
	case mir.Minimum:
		return least
	case mir.Variance:
		squares := 0.0
		for _, v := range vs {
			squares += (v - mean) * (v - mean)
		}
		return squares / float64(len(vs))
	}
	return vs[len(vs)-1]
}

func everyFunction() []mir.Function {
	return []mir.Function{mir.Last, mir.Sum, mir.Average, mir.Maximum, mir.Minimum, mir.Variance}
}

// TestStatsAreThoseOfAllValues checks that merging the statistics of threads gives the
// statistics of all values.
func TestStatsAreThoseOfAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.SliceOfN(rapid.SliceOf(rapid.Float64Range(0, 1e6)), 1, 8).Draw(t, "threads")
		var all Stats
		var values []float64
		for _, thread := range threads {
			var s Stats
			for _, v := range thread {
				s.Add(v)
				values = append(values, v)
			}
			all.Merge(s)
		}
		for _, f := range everyFunction() {
			got, ok := all.Of(f)
			if ok != (len(values) > 0) {
				t.Fatalf("%s: ok is %v for %d values", f, ok, len(values))
			}
			if !ok {
				continue
			}
			if want := naive(f, values); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("%s of %v is %v, want %v", f, values, got, want)
			}
		}
	})
}

func TestVarianceIsNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e9, 1e9).Draw(t, "value")
		var s Stats
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			s.Add(v)
		}
		if got, _ := s.Of(mir.Variance); got < 0 || math.IsNaN(got) {
			t.Fatalf("variance %v", got)
		}
	})
}

// TestVarianceDoesNotCancel checks variances that are small compared to the values, such as
// those of 36 s ± 0.5 µs, and of a constant.
func TestVarianceDoesNotCancel(t *testing.T) {
	const samples = 1_000_000
	for _, c := range []struct{ mean, off, want float64 }{
		{36_000, 0.0005, 0.0005 * 0.0005}, {8.988681, 0, 0}, {1e9, 0.001, 1e-6},
	} {
		var all Stats
		halves := make([]Stats, 3) // as for several entities
		for i := range samples {
			v := c.mean + c.off
			if i%2 == 0 {
				v = c.mean - c.off
			}
			all.Add(v)
			halves[i*len(halves)/samples].Add(v)
		}
		var merged Stats
		for _, h := range halves {
			merged.Merge(h)
		}
		for _, s := range []Stats{all, merged} {
			if got, _ := s.Of(mir.Variance); math.Abs(got-c.want) > 1e-3*c.want {
				t.Errorf("%v ± %v has the variance %v, want %v", c.mean, c.off, got, c.want)
			}
		}
	}
}
