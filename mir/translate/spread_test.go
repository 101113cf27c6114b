package translate

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/program"
)

// withHistogram returns the reply to reading a timer, with the histogram of each thread as
// pa_timer_histogram returns it.
func (ts timings) withHistogram(threads []omis.Token) omis.Reply {
	var list []omis.Value
	for _, thread := range threads {
		counts := make([]uint64, program.Buckets)
		for _, ns := range ts[thread] {
			counts[program.BucketOf(uint64(ns))]++
		}
		var buckets []omis.Value
		for _, b := range program.DistributionOf(counts) {
			buckets = append(buckets, omis.Float(float64(b.Least)/1e9), omis.Float(float64(b.Most)/1e9), omis.Int(int64(b.Count)))
		}
		list = append(list, omis.TokenValue("p_1"), omis.TokenValue(thread), omis.Int(int64(len(ts[thread]))), omis.List(buckets...))
	}
	answer := omis.ObjectResult{Objects: []omis.Token{"pa_t_1"}, Values: []omis.Value{omis.Int(int64(len(threads))), omis.List(list...)}}
	return append(ts.reply("", threads), omis.ServiceResult{answer})
}

// TestPercentiles checks that the percentiles of a thread, of a process and of all threads equal
// the percentiles of the measured durations, within the reported error.
func TestPercentiles(t *testing.T) {
	percent := []float64{0, 50, 90, 99.9, 100}
	levels := map[string]*mir.InstrRequest{
		"threads":    {},
		"processes":  {Entities: []mir.Entity{{Kind: mir.Process, ID: "*"}}},
		"statistics": {Measuring: &mir.Measuring{Aggregates: []mir.Function{mir.Maximum, mir.Average}}},
	}
	for level, request := range levels {
		t.Run(level, func(t *testing.T) {
			request.Region, request.Percentiles = &mir.CodeRegion{From: "f.1"}, percent
			request.Metrics = []mir.Metric{{Name: "WC_TIME"}}
			rapid.Check(t, func(t *rapid.T) { checkPercentiles(t, request) })
		})
	}
}

func checkPercentiles(t *rapid.T, request *mir.InstrRequest) {
	targets, threads := oneProcess(rapid.IntRange(1, 4).Draw(t, "threads"))
	measured, all := make(timings), []int64(nil)
	for _, thread := range threads {
		measured[thread] = rapid.SliceOfN(rapid.Int64Range(0, 1e10), 0, 50).Draw(t, "ns")
		all = append(all, measured[thread]...)
	}
	plan, err := Instrument(request, targets)
	if err != nil {
		t.Fatal(err)
	}
	vs, err := plan.Values(measured.withHistogram(threads), Handles{Timer: "pa_t_1"})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, tuple := range plan.tuples(vs) {
		durations := all
		if request.Measuring == nil && request.Entities == nil {
			durations = measured[omis.Token(tuple.ThreadID)]
		}
		checked++
		checkSpread(t, tuple.Spread, request.Percentiles, durations)
	}
	if checked == 0 {
		t.Fatal("nothing is checked")
	}
}

func checkSpread(t *rapid.T, s *mir.Spread, percent []float64, durations []int64) {
	if len(durations) == 0 {
		if s != nil {
			t.Fatalf("percentiles without durations: %+v", s)
		}
		return
	}
	durations = slices.Sorted(slices.Values(durations))
	for i, p := range s.Percentiles {
		rank := max(1, int(math.Ceil(float64(len(durations))*percent[i]/100-1e-9)))
		truth := float64(durations[rank-1]) / 1e6
		value, half := decimalOf(t, p.Value), decimalOf(t, p.Error)
		if p.Of != percent[i] || math.Abs(value-truth) > half+1e-9 || half > value/16+1e-6 {
			t.Fatalf("%v%% of %v ns: %+v", percent[i], durations, p)
		}
	}
}

func decimalOf(t *rapid.T, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBetween checks that the result is in whole nanoseconds and covers both limits.
func TestBetween(t *testing.T) {
	for _, c := range []struct{ least, most, middle, half uint64 }{
		{7, 7, 7, 0}, {16, 17, 17, 1}, {16, 19, 18, 2}, {10, 20, 15, 5}, {0, math.MaxUint64, 1 << 63, 1 << 63},
	} {
		if middle, half := between(c.least, c.most); middle != c.middle || half != c.half {
			t.Errorf("%d to %d: %d, give or take %d", c.least, c.most, middle, half)
		}
	}
}
