package pa

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func sampling(oneIn int64) row { return row{sampler: sampler{oneIn: oneIn}} }

// TestOneOfEverySoMany checks that exactly one of every oneIn consecutive intervals is
// timed, each with the same chance.
func TestOneOfEverySoMany(t *testing.T) {
	const oneIn, blocks = 5, 4000
	var places [oneIn]int
	r := sampling(oneIn)
	for b := range blocks {
		timed := 0
		for i := range places {
			if r.chooses() {
				places[i]++
				timed++
			}
		}
		if timed != 1 {
			t.Fatalf("%d are timed of block %d", timed, b)
		}
	}
	for i, n := range places {
		// Seven standard deviations.
		if share, off := blocks/oneIn, 7*math.Sqrt(blocks*0.2*0.8); math.Abs(float64(n-share)) > off {
			t.Errorf("number %d of %d was timed %d times in %d", i, oneIn, n, blocks)
		}
	}
}

// TestSampledRowProperties checks that timed and other intervals are never confused,
// however calls nest, recur at the same place of the stack or are left by exceptions.
func TestSampledRowProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		r := sampling(rapid.Int64Range(1, 6).Draw(t, "one in"))
		type frame struct {
			sp    uint64
			from  int64
			timed bool
		}
		var stack []frame
		var starts, count, open int64
		var sum uint64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c += clock(rapid.IntRange(1, 1000).Draw(t, "passes"))
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what == 0: // an exception, caught some frames further up
				stack = stack[:rapid.IntRange(0, len(stack)).Draw(t, "caught")]
			case what < 5 && len(stack) > 0:
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				r.stop(&r.stack, top.sp, int64(c))
				if top.timed {
					count++
					sum += uint64(int64(c) - top.from)
				}
			default:
				f := frame{sp: uint64(1<<40 - 16*len(stack)), from: int64(c)}
				before := r.skipped
				r.start(&r.stack, f.sp, c.now)
				f.timed = r.skipped == before
				stack = append(stack, f)
				starts++
			}
		}
		for _, f := range stack {
			if f.timed {
				open++
			}
		}
		if r.begun() != starts || r.count != count || r.sum.Lo != sum || int64(len(r.open)) < open {
			t.Fatalf("row %+v, want %d starts, %d intervals of %d, %d open", r, starts, count, sum, open)
		}
	})
}

// TestStandardError checks that the true sum lies within the estimated standard error in
// about 68 of a hundred cases, and within three standard errors in 99.7.
func TestStandardError(t *testing.T) {
	const oneIn, calls, times = 10, 1000, 400
	source := rand.New(rand.NewPCG(1, 2))
	within, within3, total := 0, 0, 0.0
	for range times {
		r := sampling(oneIn)
		truth, at := 0.0, int64(0)
		for range calls {
			ns := int64(source.ExpFloat64() * 1000)
			r.start(&r.stack, 64, func() int64 { return at })
			at += ns
			r.stop(&r.stack, 64, at)
			truth += float64(ns)
		}
		estimated := r.sum.Float() * r.each()
		off, deviation := math.Abs(estimated-truth), r.deviation()*1e9
		if off <= deviation {
			within++
		}
		if off <= 3*deviation {
			within3++
		}
		total += estimated / truth
	}
	if mean := total / times; math.Abs(mean-1) > 0.03 {
		t.Errorf("the estimate is on average %.3f of the true sum", mean)
	}
	if share := float64(within) / times; share < 0.56 || share > 0.80 {
		t.Errorf("%.2f of the true sums lie within the standard error", share)
	}
	if share := float64(within3) / times; share < 0.95 {
		t.Errorf("%.3f of the true sums lie within three standard errors", share)
	}
}

func TestErrorOfFew(t *testing.T) {
	all, none, one, equal := row{}, row{skipped: 3}, row{skipped: 3}, row{skipped: 2}
	for range 4 {
		all.measured(10)
	}
	one.measured(10)
	equal.measured(10)
	equal.measured(10)
	for name, test := range map[string]struct {
		row        *row
		sum, error float64
	}{"all timed": {&all, 40, 0}, "none": {&none, 0, noEstimate}, "one": {&one, 40, noEstimate}, "equal ones": {&equal, 40, 0}} {
		if got := test.row.sum.Float() * test.row.each(); got != test.sum || test.row.deviation() != test.error {
			t.Errorf("%s: sum %g, error %g; want %g, %g", name, got, test.row.deviation(), test.sum, test.error)
		}
	}
}

// TestSampledWithoutStack checks that intervals of events without a stack pointer are all
// timed.
func TestSampledWithoutStack(t *testing.T) {
	var c clock
	r := sampling(10)
	for range 20 {
		r.start(&r.stack, 0, c.now)
		r.stop(&r.stack, 0, 1)
	}
	if r.count != 20 || r.skipped != 0 {
		t.Errorf("row %+v", r)
	}
}

// TestErrorOfLong checks the error of long intervals that differ by less than the rounding
// of their squares.
func TestErrorOfLong(t *testing.T) {
	r := row{skipped: 2}
	r.measured(36e9 - 500)
	r.measured(36e9 + 500)
	// Two of four were timed; their variance is 2·500² ns².
	if got, want := r.deviation(), 4*math.Sqrt(2*500*500/2*0.5)/1e9; math.Abs(got-want) > 1e-9*want {
		t.Errorf("error %g, want %g", got, want)
	}
}
