//go:build linux

package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mirador/omis/program"
)

// blurred returns batches of a trial with intervals of the length truth, measured by a
// clock that advances in steps; a share of the batches is disturbed.
func blurred(random *rand.Rand, batches, intervals int, truth float64, disturbed float64) (list []float64) {
	for range batches {
		var sum float64
		for range intervals {
			begin := grain * random.Float64()
			sum += grain * math.Floor((begin+truth)/grain)
		}
		mean := sum / float64(intervals)
		if random.Float64() < disturbed {
			mean += 1 + 20*random.Float64()
		}
		list = append(list, mean)
	}
	return list
}

// TestFloorIsTheTruth checks that floor returns the true length, whether few batches are
// disturbed or nearly all, and whether they measure many intervals or few; and that the
// least batch is too short.
func TestFloorIsTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		intervals int
		disturbed float64
		tolerance float64
	}{{1000, 0, 0.1}, {1000, 0.3, 0.2}, {1000, 0.95, 0.5}, {20, 0, 1}, {20, 0.3, 2}} {
		for range 5 {
			const truth = 57.3
			list := blurred(random, mostRounds, c.intervals, truth, c.disturbed)
			one := &trial{intervals: float64(c.intervals)}
			if got := floor(list, one.blur()); math.Abs(got-truth) > c.tolerance {
				t.Errorf("%+v: %.2f of %v", c, got, truth)
			}
			if least := slices.Min(list); c.intervals == 20 && least > truth-1.5 {
				t.Errorf("the least is %.2f: the batches are not blurred", least)
			}
		}
	}
}

// TestSettled checks that batches settle a trial only if enough of them agree.
func TestSettled(t *testing.T) {
	alone := []float64{50}
	apart := []float64{50}
	near := []float64{50}
	for i := range 2 * alike {
		apart = append(apart, 50*(1.02+float64(i)/10))
		near = append(near, 50.1)
	}
	for _, c := range []struct {
		what string
		list []float64
		want bool
	}{{"nothing", nil, false}, {"one", alone, false}, {"apart", apart, false}, {"alike", near, true}} {
		if got := settled(c.list, 0); got != c.want {
			t.Errorf("%s: settled is %v", c.what, got)
		}
	}
	counted := &trial{probed: near}
	if !counted.settled() {
		t.Error("a trial that is only counted waits for intervals")
	}
	timed := &trial{end: "return", probed: near, measured: apart, intervals: 1000}
	if timed.settled() {
		t.Error("a trial is settled although its intervals are not")
	}
	timed.measured = near
	if !timed.settled() {
		t.Error("a trial is not settled although its batches agree")
	}
}

// TestCallsApart checks that all calls with pauses are made and measured.
func TestCallsApart(t *testing.T) {
	c := machine(t)
	d, err := start(c.Node.Identify)
	if err != nil {
		t.Fatal(err)
	}
	defer d.end()
	one := &trial{begin: "begin", end: "end", function: 1}
	s := &sites{begin: []site{{"begin", begins[0]}}, end: []site{{"end", ends[0]}}}
	remove, err := programs{c.Placers[1]}.plant(d, []*trial{one}, s)
	if err != nil {
		t.Fatal(err)
	}
	one.calls = 100
	for _, clock := range []program.Clock{program.ClockOrdered, program.ClockFast} {
		if err := one.turn(d, clock); err != nil {
			t.Fatal(err)
		}
		if want := float64(100 * howLong / roundsTimed(clock)); one.intervals != want {
			t.Errorf("%v of %v intervals were measured", one.intervals, want)
		}
	}
	if one.before.count != 100+100+100+9 || len(one.probed) != 2 || len(one.measured) != 2 {
		t.Errorf("%v intervals in all, and %d and %d batches", one.before.count, len(one.probed), len(one.measured))
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}
