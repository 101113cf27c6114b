//go:build linux && amd64

package place_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/place/rig"
)

// Requests move to the monitor for others that stand in their way. No call is missed
// meanwhile; intervals that are open then are told as unfinished.
func TestMoveWhileItRuns(t *testing.T) {
	const (
		breakpoint = `thread_reached_addr([],%#x) : print(["here"])`
		sysCall    = `thread_has_started_sys_call([],"getppid") : pa_timer_start([pa_t_%d])`
	)
	busy := subject.Compile(t, "busy", "-O2", filepath.Join("testdata", "busy.c"))
	for _, c := range []struct {
		name, placement string
		work            string // for the target: threads, milliseconds, those of a signal handler
		timed           bool
	}{
		{"a counter in the program", inline.Name, "3 200 0", false},
		{"a counter in the kernel", kernel.Name, "3 200 0", false},
		{"a timer, for another request that works on it", inline.Name, "3 200 0", true},
		// A thread whose handler will return to the code that is taken away counts there
		// once more.
		{"a counter, during signal handlers", inline.Name, "2 400 60", false},
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
				m.Ask(": csr_delete([%s])", csr)
				m.RunsIn("trap")
				want, err := strconv.ParseInt(m.Target.Line(), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				if got := began(m, i); got != want {
					t.Errorf("%d of %d calls were counted", got, want)
				}
				m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
			}
		})
	}
}

// began is what a counter has counted, and how many intervals of a timer have begun.
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
