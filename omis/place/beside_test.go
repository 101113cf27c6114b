//go:build linux && amd64

package place_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/linux"
	"mirador/omis/monitor/rig"
)

const endsProcess = "another tool's uprobe there would end the process"

// TestExclusivePlacesAreExplained checks that the explanation of a request contains what other tools
// must not do, before the code is changed, and that the state of the request contains it afterwards.
func TestExclusivePlacesAreExplained(t *testing.T) {
	path := buildShared(t)
	for _, c := range []struct {
		name, function string
		sharing        bool
		placers        []rig.NewPlacer
		exclusive      bool
	}{
		{"a jump that holds threads", "push1", false, nil, true},
		{"a breakpoint that holds threads", "push1", true, nil, false},
		{"a jump at the first instruction", sole[0], false, bothPlacements, true},
		{"a jump at the second instruction", "push1", false, bothPlacements, false},
		{"in the kernel", sole[0], true, bothPlacements, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := rig.Start(t, path)
			m := rig.OpenAll(t, linux.Config{Name: "here", Sharing: c.sharing}, c.placers, g)
			m.Ask(": pa_counter_create()")
			request := fmt.Sprintf("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", g.Func[c.function])
			x, err := m.Tool.Explain(nil, request)
			if err != nil || strings.Contains(x[0].Placement.Why, endsProcess) != c.exclusive {
				t.Errorf("before: %v, %v", x, err)
			}
			m.Define("%s", request)
			m.Enable()
			if x, err := m.Tool.State(omis.Token(m.CSRs[0])); err != nil || strings.Contains(x.Placement.Why, endsProcess) != c.exclusive {
				t.Errorf("afterwards: %s, %v", x.Placement, err)
			}
			work(m)
		})
	}
}

// TestNeighbourAtBreakpoint checks that a breakpoint is set again after another tool's uprobe at the
// same address. The uprobe receives the hits of the breakpoint; when the tool removes it, the kernel
// also removes the breakpoint. The state of the request then reports that.
func TestNeighbourAtBreakpoint(t *testing.T) {
	g := rig.Start(t, buildShared(t))
	m := rig.Open(t, linux.Config{Name: "here", Ptrace: true}, placers["trap"], g)
	m.Ask(": pa_counter_create()")
	m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", g.Func["push1"])
	m.Enable()
	counted := func(want int64) {
		t.Helper()
		if n, _ := m.Ask(": pa_counter_sum([pa_c_1],2)")[1][0].Values[1].List[2].Int64(); n != want {
			t.Errorf("%d hits, want %d", n, want)
		}
	}
	notes := func(want bool) {
		t.Helper()
		x, err := m.Tool.State(omis.Token(m.CSRs[0]))
		if err != nil || strings.Contains(x.Placement.Why, "another tool has taken our breakpoint away") != want {
			t.Errorf("%s, %v", x.Placement, err)
		}
	}
	work(m)
	counted(calls)
	notes(false)
	n := setUprobes(t, g, []string{"push1"})
	work(m)
	n.counts(calls)
	n.removeUprobes()
	notes(true)
	work(m)
	counted(2 * calls)
	notes(true)
}
