//go:build linux && amd64

package place_test

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mirador/omis"
	"mirador/omis/host/uprobe"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// shareable lists the functions of the target that other tools can probe while they have a jump of ours,
// sole the functions where they cannot.
var (
	shareable = []string{"push1", "push2", "mov3", "sub4", "red5", "flags3", "const5", "nop5", "sub6", "pad"}
	sole      = []string{"stack_only", "const_only"}
)

// calls is the number of times that the target calls each function for one command.
const calls = 50

func buildShared(t *testing.T) string {
	t.Helper()
	return subject.Compile(t, "shared", filepath.Join("testdata", "shared.c"), filepath.Join("testdata", "shared.s"))
}

// otherTool simulates another tool that has set uprobes at functions of a target.
type otherTool struct {
	t       *testing.T
	uprobes []*uprobe.Uprobe
	names   []string
}

// setUprobes sets another tool's uprobes: at the entries of functions with an even index in names, and at the
// returns of the others.
func setUprobes(t *testing.T, g *rig.Target, names []string) *otherTool {
	t.Helper()
	file, err := elf.Open(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	n := &otherTool{t: t, names: names}
	for i, name := range names {
		s := symbols[slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })]
		section := file.Sections[s.Section]
		u, err := uprobe.Set(g.ID.PID, g.Path, s.Value-section.Addr+section.Offset, uint64(i%2))
		if err != nil {
			t.Fatal(err)
		}
		n.uprobes = append(n.uprobes, u)
	}
	return n
}

// counts checks the number of hits of each uprobe.
func (n *otherTool) counts(want uint64) {
	n.t.Helper()
	for i, u := range n.uprobes {
		if got, err := u.Count(); err != nil || got != want {
			n.t.Errorf("the other tool has counted %d calls of %s, %v; want %d", got, n.names[i], err, want)
		}
	}
}

// removeUprobes removes the other tool's uprobes, all at the same time.
func (n *otherTool) removeUprobes() {
	var all sync.WaitGroup
	for _, u := range n.uprobes {
		all.Go(func() { u.Close() })
	}
	all.Wait()
}

// measure counts and times functions by a monitor, and returns the placement of each request.
func measure(m *rig.Monitor, names []string) (placements []string) {
	m.T.Helper()
	for _, name := range names {
		m.Region(name, "[]")
	}
	m.Enable()
	for _, csr := range m.CSRs {
		x, err := m.Tool.State(omis.Token(csr))
		if err != nil {
			m.T.Fatal(err)
		}
		placements = append(placements, x.Placement.String())
	}
	return placements
}

// work makes the target call all functions and check their results.
func work(m *rig.Monitor) {
	m.T.Helper()
	if got := m.Target.Do("%d", calls); got != "0 wrong" {
		m.T.Errorf("results of the target: %s", got)
	}
}

// checkMeasured checks the number of calls that the monitor has counted and timed.
func checkMeasured(m *rig.Monitor, want int) {
	m.T.Helper()
	for i, name := range m.Regions {
		if got, want := rig.Summary(m.Rows(i+1)), fmt.Sprintf("1×%d/%[1]d/0", want); got != want {
			m.T.Errorf("%s: measured %s, want %s", name, got, want)
		}
	}
}

var bothPlacements = []rig.NewPlacer{placers[inline.Name], placers[kernel.Name]}

// TestNeighbour checks that another tool and the monitor can probe the same functions, in any order of setting
// and removing their probes, and that both count all calls.
func TestNeighbour(t *testing.T) {
	path := buildShared(t)
	for _, theyFirst := range []bool{false, true} {
		for _, theyLeaveFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("first %v, leaves first %v", theyFirst, theyLeaveFirst), func(t *testing.T) {
				g := rig.Start(t, path)
				before := g.Code(g.Func[shareable[0]], 1024)
				for _, name := range shareable {
					g.Exits(name)
				}
				m := rig.OpenAll(t, linux.Config{Name: "here"}, bothPlacements, g)
				var n *otherTool
				theirs, ours := uint64(0), 0
				if theyFirst {
					n = setUprobes(t, g, shareable)
					work(m)
					theirs += calls
				}
				for i, p := range measure(m, shareable) {
					if !strings.HasPrefix(p, inline.Name) || strings.Contains(p, "another tool") {
						t.Errorf("the placement of request %d is %s", i, p)
					}
				}
				if !theyFirst {
					work(m)
					n, ours = setUprobes(t, g, shareable), ours+calls
				}
				work(m)
				n.counts(theirs + calls)
				checkMeasured(m, ours+calls)
				if theyLeaveFirst {
					n.removeUprobes()
					work(m)
					checkMeasured(m, ours+2*calls)
					m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
				} else {
					m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
					work(m)
					n.counts(theirs + 2*calls)
					n.removeUprobes()
				}
				work(m)
				if after := g.Code(g.Func[shareable[0]], 1024); !bytes.Equal(before, after) {
					t.Error("the code does not have its original bytes")
				}
			})
		}
	}
}

// TestSoleFirstInstruction checks functions that can have a jump only at the first instruction: the request
// reports that no other tool may probe them, or its placement is not inline.
func TestSoleFirstInstruction(t *testing.T) {
	path := buildShared(t)
	for _, c := range []struct {
		name    string
		sharing bool
		before  bool // the other tool sets its uprobes first
		want    string
	}{
		{"speed", false, false, inline.Name},
		{"sharing", true, false, kernel.Name},
		{"another tool before us", false, true, kernel.Name},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := rig.Start(t, path)
			for _, name := range sole {
				g.Exits(name)
			}
			m := rig.OpenAll(t, linux.Config{Name: "here", Sharing: c.sharing}, bothPlacements, g)
			var n *otherTool
			theirs := uint64(0)
			if c.before {
				n = setUprobes(t, g, sole)
				work(m)
				theirs += calls
			}
			for i, p := range measure(m, sole) {
				exclusive := strings.Contains(p, "another tool's uprobe there would end the process")
				if atBegin := i%2 == 0; !strings.HasPrefix(p, c.want) || atBegin && exclusive != (c.want == inline.Name) {
					t.Errorf("the placement of request %d is %s", i, p)
				}
			}
			ours := 0
			if !c.before && c.sharing {
				work(m)
				n, ours = setUprobes(t, g, sole), calls
			}
			work(m)
			checkMeasured(m, ours+calls)
			if n != nil {
				n.counts(theirs + calls)
				n.removeUprobes()
				work(m)
				checkMeasured(m, ours+2*calls)
			}
		})
	}
}

// TestNeighbourBeforeTrap checks that no breakpoint is set at the address of another tool's uprobe, because the
// kernel would overwrite it with the instruction from the file.
func TestNeighbourBeforeTrap(t *testing.T) {
	g := rig.Start(t, buildShared(t))
	m := newRig(t, "", g)
	n := setUprobes(t, g, []string{"push1", "nop5"})
	defer n.removeUprobes()
	work(m) // at the first hit the kernel replaces the nop by a call
	for _, name := range n.names {
		m.Define("thread_reached_addr([],%#x) : print([1])", g.Func[name])
	}
	for _, csr := range m.CSRs {
		reply, err := m.Tool.Request(context.Background(), fmt.Sprintf(": csr_enable([%s])", csr), nil, 0)
		if err == nil {
			err = reply.Err()
		}
		if err == nil || !strings.Contains(err.Error(), "another tool's uprobe") {
			t.Errorf("%s: %v, want a refusal because of the other tool", csr, err)
		}
	}
	work(m)
	n.counts(2 * calls)
}

// TestInnerNop checks, in all placements, that a probe at a nop of five bytes does not change the results of a
// function that uses memory below its stack pointer.
func TestInnerNop(t *testing.T) {
	const nop = 5 // offset of the nop in the function
	for _, placements := range [][]rig.NewPlacer{bothPlacements, {placers[kernel.Name]}} {
		g := rig.Start(t, buildShared(t))
		m := rig.OpenAll(t, linux.Config{Name: "here"}, placements, g)
		m.Ask(": pa_counter_create()")
		m.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", g.Func["inner5"]+nop)
		m.Enable()
		work(m)
		if n, _ := m.Ask(": pa_counter_sum([pa_c_1],2)")[1][0].Values[1].List[2].Int64(); n != calls {
			t.Errorf("%d hits in the placement %s, want %d", n, m.Where(), calls)
		}
	}
}
