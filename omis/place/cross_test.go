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
			r := newRig(t, c.placement, rig.Start(t, program))
			r.Ask(": pa_counter_create()")
			r.Ask(": %s", c.timer)
			if c.values.sum > 0 {
				r.Define(`thread_has_started_sys_call([],"getppid") : pa_counter_add([pa_c_1],1)`)
			}
			r.Define("thread_reached_addr([],%#x) : pa_timer_begin([pa_t_1])", r.Target.Func["opens"])
			for _, exit := range r.Target.Exits("closes") {
				r.Define("thread_reached_addr([],%#x) : pa_timer_end([pa_t_1])", exit)
			}
			r.Enable()
			r.RunsIn(c.placement)
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
			if got := exact(r, 1); got.intervals != want.intervals+1 {
				t.Errorf("%+v: the last interval has not ended", got)
			}
		})
	}
}
