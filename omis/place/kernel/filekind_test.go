//go:build linux && amd64

package kernel_test

import (
	"testing"
	"time"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
)

// Calls on sockets are distinguished from the same calls on files, both in the kernel and by trap, where
// they begin and where they end.
func TestCallsOnFiles(t *testing.T) {
	for _, placement := range []string{kernel.Name, "trap"} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, rig.Caller(t)))
			for i, name := range []string{"write", "read"} {
				r.Regions = append(r.Regions, name)
				r.Ask(`: pa_counter_create() pa_timer_create2(%q)`, []string{"ordered", "cpu"}[i])
				r.Define("thread_has_started_sys_call([],%q) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%d])", name+"@socket", i+1, i+1)
				r.Define("thread_has_ended_sys_call([],%q) : pa_timer_stop([pa_t_%d])", name, i+1)
			}
			for i, name := range []string{"write@file", "read@socket"} {
				r.Regions = append(r.Regions, name)
				r.Ask(`: pa_counter_create() pa_timer_create()`)
				r.Define("thread_has_started_sys_call([],%q) : pa_timer_start([pa_t_%d])", name, i+3)
				r.Define("thread_has_ended_sys_call([],%q) : pa_counter_add_amount([pa_c_%d],$par1) pa_timer_stop([pa_t_%d])", name, i+3, i+3)
			}
			r.Enable()
			r.RunsIn(placement)
			for range 2 {
				r.Target.Do("sockets 100")
			}
			for region, want := range []string{"1×200/200/0", "1×200/200/0", "1×3200/400/0", "1×1600/200/0"} {
				got := rig.Summary(r.Rows(region + 1))
				for late := time.Now().Add(10 * time.Second); got != want && time.Now().Before(late); got = rig.Summary(r.Rows(region + 1)) {
					time.Sleep(time.Millisecond)
				}
				if got != want {
					t.Errorf("%s: %s, want %s", r.Regions[region], got, want)
				}
			}
		})
	}
}
