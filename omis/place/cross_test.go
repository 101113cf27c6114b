//go:build linux && amd64

package place_test

import (
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// TestFromOneFunctionToAnother checks, in all placements, that pa_timer_begin and pa_timer_end measure from the beginning
// of one function to the end of another one, wherever these are on the stack of the thread.
func TestFromOneFunctionToAnother(t *testing.T) {
	program := compileGains(t)
	for _, c := range []struct {
		placement, timer string
		values           total // of each thread, for each time
	}{
		{"trap", `pa_timer_over_counter([pa_c_1],1,"sums")`, total{intervals: 2, sum: 5 + 3, last: 3, least: 3, most: 5, unfinished: 1}},
		{kernel.Name, `pa_timer_over_counter([pa_c_1],1,"sums")`, total{intervals: 2, sum: 5 + 3, last: 3, least: 3, most: 5, unfinished: 1}},
		{"trap", `pa_timer_create2("ordered")`, total{intervals: 2, unfinished: 1}},
		{kernel.Name, `pa_timer_create2("ordered")`, total{intervals: 2, unfinished: 1}},
		{inline.Name, `pa_timer_create2("ordered")`, total{intervals: 2, unfinished: 1}},
		{inline.Name, `pa_timer_create4("ordered",1,"histogram")`, total{intervals: 2, unfinished: 1}},
	} {
		t.Run(c.timer+"/"+c.placement, func(t *testing.T) {
			r := crossing(t, program, c.placement, c.timer, c.values.sum > 0)
			const threads, times = 3, 20
			r.Target.Do("cross %d %d", threads, times)
			r.Target.Do("closes 1") // of another thread: the one that reads commands
			r.Target.Do("opens 1")
			want := c.values
			want.threads, want.intervals, want.sum, want.unfinished = threads+1, threads*times*want.intervals, threads*times*want.sum, threads*times*want.unfinished
			got := exact(r, 1)
			if c.values.sum == 0 {
				got.sum, got.last, got.least, got.most = 0, 0, 0, 0
			} else {
				got.last = want.last // the thread that opened last has none
			}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			r.Target.Do("closes 1")
			got = exact(r, 1)
			if got.intervals != want.intervals+1 {
				t.Errorf("%+v: the last interval has not ended", got)
			}
			var sum int64
			values := r.Ask(": pa_trace_read([pa_b_1],0)")[1][0].Values
			for l := values[2].List; len(l) > 0; l = l[5:] {
				v, _ := l[4].Int64()
				sum += v
			}
			if n := int64(values[1].N); n != got.intervals || max(sum-got.sum, got.sum-sum) > n { // durations are rounded one by one
				t.Errorf("%d records with the sum %d, want those of %+v", n, sum, got)
			}
		})
	}
}

// crossing measures from one function to another by the timer pa_t_1, in a process of its own; counts says that the
// counter pa_c_1 is used.
func crossing(t *testing.T, program, placement, timer string, counts bool) *rig.Monitor {
	t.Helper()
	r := newRig(t, placement, rig.Start(t, program))
	r.Ask(": pa_counter_create() pa_trace_create(8192)")
	r.Ask(": %s", timer)
	if counts {
		r.Define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_1],1)`)
	}
	r.Define("thread_reached_addr([],%#x) : pa_timer_begin([pa_t_1])", r.Target.Func["opens"])
	for _, exit := range r.Target.Exits("closes") {
		r.Define("thread_reached_addr([],%#x) : pa_timer_end([pa_t_1]) pa_trace_last([pa_b_1],1)", exit)
	}
	r.Enable()
	r.RunsIn(placement)
	return r
}

// TestSampledFromOneFunctionToAnother checks, in all placements, that one in three beginnings is chosen, that an end
// does not end an interval of an earlier beginning, and that all beginnings are counted. Of three beginnings the
// second one has no end.
func TestSampledFromOneFunctionToAnother(t *testing.T) {
	program := compileGains(t)
	for _, c := range []struct{ placement, timer string }{
		{"trap", `pa_timer_over_counter([pa_c_1],3,"histogram")`},
		{kernel.Name, `pa_timer_over_counter([pa_c_1],3,"histogram")`},
		{inline.Name, `pa_timer_create4("ordered",3,"histogram")`},
	} {
		t.Run(c.placement, func(t *testing.T) {
			counts := c.placement != inline.Name
			r := crossing(t, program, c.placement, c.timer, counts)
			const threads, times = 3, 20
			r.Target.Do("cross %d %d", threads, times)
			list := r.Ask(": pa_timer_estimate([pa_t_1],2)")[1][0].Values[1].List
			begun, timed, unfinished := list[2].N, list[3].N, list[9].N
			if begun != 3*threads*times || timed+unfinished != threads*times || timed == 0 || unfinished == 0 {
				t.Errorf("%d intervals began, %d were timed and %d had no end, want %d and %d of both kinds", begun, timed, unfinished, 3*threads*times, threads*times)
			}
			buckets := r.Ask(": pa_timer_histogram([pa_t_1],2)")[1][0].Values[1].List[3].List
			var spread int64
			for ; len(buckets) > 0; buckets = buckets[3:] {
				spread += int64(buckets[2].N)
			}
			if got := exact(r, 1); spread != int64(timed) || counts && (got.least != 3 || got.most != 5) {
				t.Errorf("%+v, and %d in the histogram, want %d, of 3 or 5 system calls", got, spread, timed)
			}
		})
	}
}
