//go:build linux && amd64

package place_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/rig"
)

// wanted is how many moves are to fall into the middle of the calls, of so many.
const wanted, tries = 2, 20

// A breakpoint has the monitor execute what ran elsewhere at its address. While that moves,
// no call is missed.
func TestMoveWhileItRuns(t *testing.T) {
	for placement, calls := range map[string]int64{inline.Name: 40_000, kernel.Name: 15_000} {
		t.Run(placement, func(t *testing.T) {
			m := newRig(t, placement, rig.Start(t, rig.Scenes(t, "-O2")))
			untilAmid(t, func(i int) bool { return moveAmid(t, m, placement, i, calls) })
		})
	}
}

// Where one request of a timer cannot run in the program, none does. No call is missed
// while they move; intervals that are open then are told as unfinished.
func TestMoveWithATimer(t *testing.T) {
	m := newRig(t, inline.Name, rig.Start(t, rig.Scenes(t, "-O2")))
	untilAmid(t, func(i int) bool {
		m.CSRs = nil
		m.Ask(": pa_timer_create()")
		m.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_%d])", m.Target.Func["work"], i)
		for _, exit := range m.Target.Exits("work") {
			m.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_%d])", exit, i)
		}
		counted := func() int64 {
			row := totals(m.Ask(": pa_timer_sum([pa_t_%d],2)", i))
			n, _ := row[2].Int64()
			unfinished, _ := row[8].Int64()
			return n + unfinished
		}
		return amid(t, m, inline.Name, 10_000, counted, fmt.Sprintf(`thread_has_started_sys_call([],"getppid") : pa_timer_start([pa_t_%d])`, i))
	})
}

func untilAmid(t *testing.T, move func(i int) bool) {
	t.Helper()
	for i, amid := 1, 0; amid < wanted; i++ {
		if i > tries {
			t.Fatalf("%d of %d moves fell into the middle of the calls", amid, tries)
		}
		if move(i) {
			amid++
		}
	}
}

// moveAmid counts calls by a new counter, the number of which is given, and has a breakpoint
// stand in between; true: when only some of the calls had been made.
func moveAmid(t *testing.T, m *rig.Monitor, placement string, counter int, calls int64) bool {
	work := m.Target.Func["work"]
	m.CSRs = nil
	m.Ask(": pa_counter_create()")
	m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1)", work, counter)
	counted := func() int64 {
		row := totals(m.Ask(": pa_counter_sum([pa_c_%d],2)", counter))
		n, _ := row[len(row)-1].Int64()
		return n
	}
	return amid(t, m, placement, calls, counted, fmt.Sprintf(`thread_reached_addr([],%#x) : print(["here"])`, work))
}

// amid has requests move to the monitor for another one while calls are made.
func amid(t *testing.T, m *rig.Monitor, placement string, calls int64, counted func() int64, other string) bool {
	t.Helper()
	const threads = 3
	m.Enable()
	m.RunsIn(placement)
	m.Target.Tell("together %d %d", threads, calls)
	rig.Until(t, "calls are counted", func() bool { return counted() > 0 })
	csr := m.Ask("%s", other)[0][0].Values[0].Token()
	m.Ask(": csr_enable([%s])", csr)
	m.Ask(": csr_delete([%s])", csr)
	moved := counted()
	m.RunsIn("trap")
	m.Target.Line()
	if got := counted(); got != threads*calls {
		t.Errorf("%d of %d calls were counted, %d of them before the move was over", got, threads*calls, moved)
	}
	m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
	return moved < threads*calls
}

// totals are the components of the only row that a request for sums was answered with; where
// nothing was measured, zeros.
func totals(reply omis.Reply) []omis.Value {
	if list := reply[1][0].Values[1].List; len(list) > 0 {
		return list
	}
	return make([]omis.Value, 9)
}
