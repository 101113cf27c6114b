//go:build linux && amd64

package place_test

import (
	"testing"

	"mirador/omis"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/rig"
)

// A breakpoint has the monitor execute what ran elsewhere at its address. While that moves,
// no call is missed.
func TestMoveWhileItRuns(t *testing.T) {
	for placement, calls := range map[string]int64{inline.Name: 40_000, kernel.Name: 15_000} {
		t.Run(placement, func(t *testing.T) {
			m := newRig(t, placement, rig.Start(t, rig.Scenes(t, "-O2")))
			const wanted, tries = 2, 20
			amid := 0
			for i := 1; amid < wanted; i++ {
				if i > tries {
					t.Fatalf("%d of %d moves fell into the middle of the calls", amid, tries)
				}
				if moveAmid(t, m, placement, i, calls) {
					amid++
				}
			}
		})
	}
}

// moveAmid counts calls by a new counter, the number of which is given, and has a breakpoint
// stand in between; true: when only some of the calls had been made.
func moveAmid(t *testing.T, m *rig.Monitor, placement string, counter int, calls int64) bool {
	const threads = 3
	work := m.Target.Func["work"]
	counted := func() int64 { return sumOf(m.Ask(": pa_counter_sum([pa_c_%d],2)", counter)) }
	m.CSRs = nil
	m.Ask(": pa_counter_create()")
	m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1)", work, counter)
	m.Enable()
	m.RunsIn(placement)
	m.Target.Tell("together %d %d", threads, calls)
	rig.Until(t, "calls are counted", func() bool { return counted() > 0 })
	told := m.Ask(`thread_reached_addr([],%#x) : print(["here"])`, work)[0][0].Values[0].Token()
	m.Ask(": csr_enable([%s])", told)
	m.Ask(": csr_delete([%s])", told)
	moved := counted()
	m.RunsIn("trap")
	m.Target.Line()
	if got := counted(); got != threads*calls {
		t.Errorf("%d of %d calls were counted, %d of them before the move was over", got, threads*calls, moved)
	}
	m.Ask(": csr_delete([%s])", m.CSRs[0])
	return moved < threads*calls
}

// sumOf is the only sum that a request for sums was answered with; 0: nothing was counted.
func sumOf(reply omis.Reply) int64 {
	list := reply[1][0].Values[1].List
	if len(list) == 0 {
		return 0
	}
	n, _ := list[len(list)-1].Int64()
	return n
}
