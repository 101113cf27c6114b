package translate

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
	"mirador/omis/program"
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

// parsed parses a value of a document.
func parsed(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDifferencesOfLevels checks the statistics of differences of a level, which may be negative.
func TestDifferencesOfLevels(t *testing.T) {
	p := &Plan{Metrics: []Metric{{Name: "HEAP_MEM_USAGE", Unit: "B", falls: true}, {Name: "MINOR_FAULTS", Unit: "1"}}}
	at := func(heap, faults uint64) []Value {
		return []Value{{Metric: 0, Stats: single(heap)}, {Metric: 1, Stats: single(faults)}}
	}
	var heap, faults Stats
	for _, v := range slices.Concat(Difference(p, at(10, 5), at(4, 9)), Difference(p, at(4, 9), at(7, 2)), Difference(p, at(7, 2), at(6, 3))) {
		if v.Metric == 0 {
			heap.Merge(v.Stats)
		} else {
			faults.Merge(v.Stats)
		}
	}
	for f, want := range map[mir.Function]string{mir.Last: "-1", mir.Minimum: "-6", mir.Maximum: "3", mir.Sum: "-4", mir.Average: "-1.33333333333", mir.Variance: "13.5555555556"} {
		if got := heap.text(f, plain); got != want {
			t.Errorf("%v of the differences of a level: %s, want %s", f, got, want)
		}
	}
	if faults.N != 2 || faults.text(mir.Sum, plain) != "5" { // one difference is over a reset
		t.Errorf("%+v", faults)
	}
	if p.Region = "f"; len(Difference(p, nil, at(1, 1))) != 1 {
		t.Error("a level that was not read at the beginning has a difference")
	}
}

func TestStatsAreThoseOfAllValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		threads := rapid.SliceOfN(rapid.SliceOf(rapid.Uint64Range(0, 1e12)), 1, 8).Draw(rt, "threads")
		var all Stats
		var values []float64
		for _, thread := range threads {
			var s Stats
			for _, v := range thread {
				s.Add(v)
				values = append(values, float64(v)/1e6)
			}
			all.Merge(s)
		}
		for _, f := range everyFunction() {
			text := all.text(f, millisecond)
			if (text != "") != (len(values) > 0) {
				rt.Fatalf("%s of %d values is %q", f, len(values), text)
			}
			if text == "" {
				continue
			}
			if got, want := parsed(t, text), naive(f, values); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				rt.Fatalf("%s of %v is %v, want %v", f, values, got, want)
			}
		}
	})
}

// TestVarianceDoesNotCancel checks variances that are small compared to the values, such as
// the variance of 36 s ± 500 ns, and of a constant.
func TestVarianceDoesNotCancel(t *testing.T) {
	const samples = 1_000_000
	for _, c := range []struct{ mean, off uint64 }{{36e9, 500}, {8988681, 0}, {1e15, 1000}} {
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
		want := significant(float64(c.off*c.off) / 1e12)
		for _, s := range []Stats{all, merged} {
			if got := s.text(mir.Variance, millisecond); got != want {
				t.Errorf("%d ± %d ns has the variance %s ms², want %s", c.mean, c.off, got, want)
			}
		}
	}
}

// TestUnits checks that whole numbers keep all digits, and that statistics and estimates have no
// digits that come from floating point arithmetic.
func TestUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{single(12_300_000).text(mir.Sum, millisecond), "12.3"},
		{single(1).text(mir.Minimum, millisecond), "0.000001"},
		{single(0).text(mir.Last, millisecond), "0"},
		{single(7_000_000).text(mir.Last, millisecond), "7"},
		{single(1<<63+1).text(mir.Maximum, millisecond), "9223372036854.775809"},
		{single(1<<63+1).text(mir.Last, plain), "9223372036854775809"},
		{Stats{N: 2, Sum: program.Uint128{Hi: 1}}.text(mir.Sum, plain), "18446744073709552000"},
		{Stats{N: 3, Sum: program.Uint128{Lo: 10_000_000}}.text(mir.Average, millisecond), "3.33333333333"},
		{millisecond.rounded(300_000.00000000006), "0.3"},
		{millisecond.rounded(1e22), "10000000000000000"},
		{significant(2.0000000000000004), "2"},
		{significant(1e-9 / 3), "0.000000000333333333333"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
