//go:build linux && amd64

package place_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// TestMoveWhileItRuns checks that no call is missed while a request moves to trap because of another request,
// and back when that ends. Intervals that are open during a move count as unfinished.
func TestMoveWhileItRuns(t *testing.T) {
	const (
		breakpoint = `thread_reached_addr([],%#x) : print(["here"])`
		sysCall    = `thread_has_started_sys_call([],"getppid") : pa_timer_start([pa_t_%d])`
	)
	busy := subject.Compile(t, "busy", "-O2", filepath.Join("testdata", "busy.c"))
	for _, c := range []struct {
		name, placement string
		work            string // command of the target: threads, milliseconds, milliseconds of a signal handler
		timed           bool
	}{
		{"a counter in the program", inline.Name, "3 200 0", false},
		{"a counter in the kernel", kernel.Name, "3 200 0", false},
		{"a timer, for another request that uses it", inline.Name, "3 200 0", true},
		// A thread whose signal handler returns to removed code runs that code once more.
		{"a counter, during signal handlers", inline.Name, "6 400 60", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newRig(t, c.placement, rig.Start(t, busy))
			work := m.Target.Func["work"]
			const rounds = 4
			for i := 1; i <= rounds; i++ {
				m.CSRs = nil
				other := fmt.Sprintf(breakpoint, work)
				if m.Ask(": pa_counter_create() pa_timer_create()"); c.timed {
					m.Define("thread_reached_addr([],%#x) : pa_timer_start([pa_t_%d])", work, i)
					for _, exit := range m.Target.Exits("work") {
						m.Define("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_%d])", exit, i)
					}
					other = fmt.Sprintf(sysCall, i)
				} else {
					m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1)", work, i)
				}
				m.Enable()
				m.RunsIn(c.placement)
				m.Target.Tell("%s", c.work)
				time.Sleep(100*time.Millisecond + time.Duration(i)*7*time.Millisecond)
				csr := m.Ask("%s", other)[0][0].Values[0].Token()
				m.Ask(": csr_enable([%s])", csr)
				m.RunsIn("trap")
				m.Ask(": csr_delete([%s])", csr)
				comesTo(m, c.placement)
				want, err := strconv.ParseInt(m.Target.Line(), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				// On a very busy machine a move may take so long that the process goes on; the requests say so.
				if got := began(m, i); got > want || got < want && !mayHaveMissed(m) {
					t.Errorf("%d of %d calls were counted", got, want)
				}
				m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
			}
		})
	}
}

// mayHaveMissed reports whether a request says that it may have missed events.
func mayHaveMissed(m *rig.Monitor) bool {
	return slices.ContainsFunc(m.CSRs, func(c string) bool {
		x, err := m.Tool.State(omis.Token(c))
		return err == nil && !x.Missed.IsZero()
	})
}

// comesTo waits until all requests have a placement. That should take a second at most; the limit leaves
// time for a busy machine.
func comesTo(m *rig.Monitor, placement string) {
	m.T.Helper()
	for end := time.Now().Add(5 * time.Second); m.Where() != placement; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			m.RunsIn(placement)
		}
	}
}

// TestTwoPlacementsAtOnePlace checks that a function that is counted inline is counted in the kernel while its
// CPU time is measured, which needs the kernel, if there is no room for both, and never by trap. No call is
// missed, and the counter returns inline afterwards.
func TestTwoPlacementsAtOnePlace(t *testing.T) {
	busy := subject.Compile(t, "busy", "-O2", filepath.Join("testdata", "busy.c"))
	g := rig.Start(t, busy)
	m := rig.OpenAll(t, linux.Config{Name: "here"}, []rig.NewPlacer{placers[inline.Name], placers[kernel.Name]}, g)
	work := g.Func["work"]
	m.Ask(`: pa_counter_create() pa_counter_create() pa_timer_create2("cpu")`)
	m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", work)
	m.Enable()
	m.RunsIn(inline.Name)
	var second []string
	for _, request := range slices.Concat([]string{fmt.Sprintf("thread_reached_addr([],%#x) : pa_counter_add([pa_c_2],1) pa_timer_start([pa_t_1])", work)}, stops(g)) {
		second = append(second, string(m.Ask("%s", request)[0][0].Values[0].Token()))
	}
	var sum int64
	for range 2 {
		g.Tell("2 400 0")
		time.Sleep(50 * time.Millisecond)
		m.Ask(": csr_enable([%s])", strings.Join(second, ","))
		for _, request := range append([]string{m.CSRs[0]}, second...) {
			if x, err := m.Tool.State(omis.Token(request)); err != nil || x.Placement.Name == "trap" {
				t.Errorf("%s: %v, %v", request, x.Placement, err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		m.Ask(": csr_disable([%s])", strings.Join(second, ","))
		comesTo(m, inline.Name)
		n, err := strconv.ParseInt(g.Line(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if sum += n; began(m, 1) < sum {
			t.Errorf("%d of %d calls were counted", began(m, 1), sum)
		}
	}
}

// stops returns the requests that stop a timer at the exits of the function.
func stops(g *rig.Target) (list []string) {
	for _, exit := range g.Exits("work") {
		list = append(list, fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1])", exit))
	}
	return list
}

// began returns the value of a counter plus the number of intervals that a timer has begun.
func began(m *rig.Monitor, number int) int64 {
	m.T.Helper()
	reply := m.Ask(": pa_counter_sum([pa_c_%d],2) pa_timer_sum([pa_t_%d],2)", number, number)
	var sum int64
	for i, components := range [][]int{{2}, {2, 8}} {
		if row := reply[1+i][0].Values[1].List; len(row) > 0 {
			for _, at := range components {
				n, _ := row[at].Int64()
				sum += n
			}
		}
	}
	return sum
}
