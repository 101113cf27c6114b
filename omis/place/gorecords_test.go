//go:build linux && amd64

package place_test

import (
	"testing"

	"mirador/omis"
	"mirador/omis/monitor/rig"
)

// goCalls has what the records of a function in Go say.
type goCalls struct {
	entered, paired, moved int
	inside                 float64 // seconds from entries to exits
	open                   map[int64][]goCall
	goroutine              map[omis.Token]int64 // of the record before
}

type goCall struct {
	place int64
	at    float64
	on    omis.Token
}

// goRecords reads a trace and pairs the records by goroutines and their stacks.
func goRecords(t *testing.T, r *rig.Monitor) *goCalls {
	t.Helper()
	c := &goCalls{open: make(map[int64][]goCall), goroutine: make(map[omis.Token]int64)}
	values := r.Ask(": pa_trace_read([pa_b_1],0)")[1][0].Values
	if values[0].N != 0 {
		t.Errorf("%d records are lost", values[0].N)
	}
	for l := values[2].List; len(l) > 0; l = l[5:] {
		mark, _ := l[3].Int64()
		value, _ := l[4].Int64()
		c.take(l[1].Token(), l[2].Float, mark, value)
	}
	return c
}

func (c *goCalls) take(thread omis.Token, at float64, mark, value int64) {
	g := c.goroutine[thread]
	open := c.open[g]
	switch mark {
	case -entersAt, -leavesAt:
		c.goroutine[thread] = value
	case entersAt:
		c.entered++
		for len(open) > 0 && open[len(open)-1].place <= value {
			open = open[:len(open)-1]
		}
		c.open[g] = append(open, goCall{value, at, thread})
	case leavesAt:
		for len(open) > 0 && open[len(open)-1].place < value {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 && open[n-1].place == value {
			c.paired++
			c.inside += at - open[n-1].at
			if open[n-1].on != thread {
				c.moved++
			}
			open = open[:n-1]
		}
		c.open[g] = open
	}
}

// TestRecordsOfGoroutines checks in every placement that the records of functions in Go have the goroutine and the
// place on its stack, which pair entries with exits on other threads, and after the runtime has moved the stack.
func TestRecordsOfGoroutines(t *testing.T) {
	path := goroutines(t)
	moved := 0
	for _, placement := range goPlacements {
		t.Run(placement, func(t *testing.T) {
			r := newGoRig(t, placement, rig.Start(t, path))
			r.Ask(": pa_trace_create(65536)")
			for _, s := range goScenarios {
				enteredGo(t, r.Target, s.function)
				r.Define("thread_reached_addr([],%#x) : pa_trace_stack([pa_b_1],%d)", r.Target.Func[s.function], entersAt)
				for _, exit := range r.Target.Exits(s.function) {
					r.Define("thread_reached_addr([],%#x) : pa_trace_stack([pa_b_1],%d)", exit, leavesAt)
				}
			}
			r.Enable()
			r.RunsIn(goPlacement[placement])
			for _, s := range goScenarios {
				did := doGo(t, r, s.what, s.n)
				got := goRecords(t, r)
				if int64(got.entered) != did.calls || int64(got.paired) != did.returns {
					t.Errorf("%s: %d entries, %d pairs; the program measured %v", s.what, got.entered, got.paired, did)
				}
				if sum := got.inside * 1e9; s.within && (sum < 0.95*float64(did.inside) || sum > 1.05*float64(did.outside)) {
					t.Errorf("%s: the sum is %g ns; the program measured %v", s.what, sum, did)
				}
				moved += got.moved
			}
		})
	}
	if moved == 0 {
		t.Error("no goroutine left a function on another thread than it entered it on")
	}
}
