package translate

import (
	"math"
	"math/rand/v2"
	"testing"

	"mirador/mir"
)

// sampleOf times one in oneIn of the durations of one thread, in milliseconds.
func sampleOf(durations []float64, oneIn int) (s Stats) {
	for i := range durations {
		if i%oneIn == 0 {
			s.Add(durations[i])
		}
	}
	s.Sampled = Sampled{Begun: int64(len(durations)), Timed: s.N, covered: int64(len(durations))}
	s.Sampled.Sum = s.Sum * float64(len(durations)) / float64(s.N)
	return s
}

// TestEstimates checks that the estimated sum is as accurate as its standard error claims, for
// one thread and for several.
func TestEstimates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds, threads, each, oneIn = 200, 7, 300, 10
	near := 0
	for range rounds {
		var all Stats
		truth := 0.0
		for range threads {
			durations := make([]float64, each)
			for i := range durations {
				durations[i] = random.ExpFloat64()
				truth += durations[i]
			}
			all.Merge(sampleOf(durations, oneIn))
		}
		sum, ok := all.Of(mir.Sum)
		deviation, known := all.deviation()
		if !ok || !known || all.Sampled.Begun != threads*each || all.Sampled.Timed != threads*each/oneIn {
			t.Fatalf("%+v", all)
		}
		if math.Abs(sum-truth) < 2*deviation {
			near++
		}
	}
	if part := float64(near) / rounds; part < 0.9 || part > 0.99 { // 0.954 in a normal distribution
		t.Errorf("%.3f of the estimates are within two standard errors", part)
	}
}

// TestEstimatesOfUntimedThreads checks that the estimate includes executions in threads
// without a timed execution.
func TestEstimatesOfUntimedThreads(t *testing.T) {
	all := sampleOf([]float64{2, 2, 2, 2, 2, 2, 2, 2}, 4)
	all.Merge(Stats{Sampled: Sampled{Begun: 3}})
	if sum, ok := all.Of(mir.Sum); !ok || sum != 22 {
		t.Errorf("11 executions of 2 ms took %v (%v)", sum, ok)
	}
	alone := Stats{Sampled: Sampled{Begun: 3}}
	if _, ok := alone.Of(mir.Sum); ok {
		t.Error("a sum without a timed execution")
	}
	if d := alone.sample(); *d != (mir.Sample{Count: 3}) {
		t.Errorf("%+v", d)
	}
}

func TestStandardErrorIsUnknown(t *testing.T) {
	for _, c := range []struct {
		timed int
		oneIn int
		want  string
	}{{1, 1, "0"}, {5, 1, "0"}, {10, 10, ""}} {
		s := sampleOf(make([]float64, c.timed), c.oneIn)
		if got := s.sample().Error; got != c.want {
			t.Errorf("one in %d of %d: the error is %q", c.oneIn, c.timed, got)
		}
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		v    float64
		f    mir.Function
		want string
	}{
		{12.3 + 1e-14, mir.Sum, "12.3"}, {0.1 + 0.2, mir.Last, "0.3"}, {0.000001, mir.Minimum, "0.000001"}, {0, mir.Last, "0"},
		{1e17, mir.Sum, "100000000000000000"}, {12345678901234, mir.Last, "12345678901234"}, {-0.1 - 0.2, mir.Maximum, "-0.3"},
		{10.0 / 3, mir.Average, "3.33333333333"}, {2.0000000000000004, mir.Average, "2"}, {1e-9 / 3, mir.Variance, "0.000000000333333333333"},
	} {
		if got := decimal(c.v, c.f); got != c.want {
			t.Errorf("%v is written %s, not %s", c.v, got, c.want)
		}
	}
}
