package translate

import (
	"math"
	"math/rand/v2"
	"testing"

	"mirador/mir"
)

// sampleOf times one in oneIn of the durations of one thread.
func sampleOf(durations []uint64, oneIn int) (s Stats) {
	for i := range durations {
		if i%oneIn == 0 {
			s.Add(durations[i])
		}
	}
	s.Sampled = Sampled{Begun: int64(len(durations)), Timed: s.N, Covered: int64(len(durations))}
	s.Sampled.Sum = s.Sum.Float() * float64(len(durations)) / float64(s.N)
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
			durations := make([]uint64, each)
			for i := range durations {
				durations[i] = uint64(random.ExpFloat64() * 1e6)
				truth += float64(durations[i])
			}
			all.Merge(sampleOf(durations, oneIn))
		}
		sum := all.Sampled.estimate()
		deviation, known := all.deviation()
		if !known || all.Sampled.Begun != threads*each || all.Sampled.Timed != threads*each/oneIn {
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
	all := sampleOf([]uint64{2e6, 2e6, 2e6, 2e6, 2e6, 2e6, 2e6, 2e6}, 4)
	all.Merge(Stats{Sampled: Sampled{Begun: 3}})
	if sum := all.text(mir.Sum, millisecond); sum != "22" {
		t.Errorf("11 executions of 2 ms took %q ms", sum)
	}
	alone := Stats{Sampled: Sampled{Begun: 3}}
	if sum := alone.text(mir.Sum, millisecond); sum != "" {
		t.Errorf("the sum without a timed execution is %q", sum)
	}
	if d := alone.sample(millisecond); *d != (mir.Sample{Count: 3}) {
		t.Errorf("%+v", d)
	}
}

func TestStandardErrorIsUnknown(t *testing.T) {
	for _, c := range []struct {
		timed int
		oneIn int
		want  string
	}{{1, 1, "0"}, {5, 1, "0"}, {10, 10, ""}} {
		s := sampleOf(make([]uint64, c.timed), c.oneIn)
		if got := s.sample(millisecond).Error; got != c.want {
			t.Errorf("one in %d of %d: the error is %q", c.oneIn, c.timed, got)
		}
	}
}
