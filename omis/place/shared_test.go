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

// shareable are the functions of the target that other tools can probe beside a jump of ours,
// sole those that they cannot.
var (
	shareable = []string{"push1", "push2", "mov3", "sub4", "red5", "flags3", "const5", "nop5", "sub6", "pad"}
	sole      = []string{"stack_only", "const_only"}
)

// calls is how often the target calls each function in a round.
const calls = 50

func buildShared(t *testing.T) string {
	t.Helper()
	return subject.Compile(t, "shared", filepath.Join("testdata", "shared.c"), filepath.Join("testdata", "shared.s"))
}

// neighbour is another tool with a uprobe at each of some functions of a target.
type neighbour struct {
	t       *testing.T
	uprobes []*uprobe.Uprobe
	names   []string
}

// settle has another tool set a uprobe at the beginning of each function, or every other time
// at its return.
func settle(t *testing.T, g *rig.Target, names []string) *neighbour {
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
	n := &neighbour{t: t, names: names}
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

// counts checks what the other tool has counted.
func (n *neighbour) counts(want uint64) {
	n.t.Helper()
	for i, u := range n.uprobes {
		if got, err := u.Count(); err != nil || got != want {
			n.t.Errorf("the other tool has counted %d calls of %s, %v; want %d", got, n.names[i], err, want)
		}
	}
}

// leave has the other tool take its uprobes out.
func (n *neighbour) leave() {
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

// work has the target call all functions.
func work(m *rig.Monitor) {
	m.T.Helper()
	if got := m.Target.Do("%d", calls); got != "0 wrong" {
		m.T.Errorf("of the target's results, %s", got)
	}
}

// gained checks what the monitor has counted and timed.
func gained(m *rig.Monitor, want int) {
	m.T.Helper()
	for i, name := range m.Regions {
		if got, want := rig.Summary(m.Rows(i+1)), fmt.Sprintf("1×%d/%[1]d/0", want); got != want {
			m.T.Errorf("of %s are measured %s, want %s", name, got, want)
		}
	}
}

var bothPlacements = []rig.NewPlacer{placers[inline.Name], placers[kernel.Name]}

// TestNeighbour has another tool probe the functions that we measure, before us and after us,
// and leave before us and after us. Nobody notices.
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
				var n *neighbour
				theirs, ours := uint64(0), 0
				if theyFirst {
					n = settle(t, g, shareable)
					work(m)
					theirs += calls
				}
				for i, p := range measure(m, shareable) {
					if !strings.HasPrefix(p, inline.Name) || strings.Contains(p, "another tool") {
						t.Errorf("request %d runs %s", i, p)
					}
				}
				if !theyFirst {
					work(m)
					n, ours = settle(t, g, shareable), ours+calls
				}
				work(m)
				n.counts(theirs + calls)
				gained(m, ours+calls)
				if theyLeaveFirst {
					n.leave()
					work(m)
					gained(m, ours+2*calls)
					m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
				} else {
					m.Ask(": csr_delete([%s])", strings.Join(m.CSRs, ","))
					work(m)
					n.counts(theirs + 2*calls)
					n.leave()
				}
				work(m)
				if after := g.Code(g.Func[shareable[0]], 1024); !bytes.Equal(before, after) {
					t.Error("the code is not what it was")
				}
			})
		}
	}
}

// TestSoleFirstInstruction: where a jump can stand only at the first instruction, the
// placement says so, or is another one.
func TestSoleFirstInstruction(t *testing.T) {
	path := buildShared(t)
	for _, c := range []struct {
		name    string
		sharing bool
		before  bool // the other tool was there before
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
			var n *neighbour
			theirs := uint64(0)
			if c.before {
				n = settle(t, g, sole)
				work(m)
				theirs += calls
			}
			for i, p := range measure(m, sole) {
				exclusive := strings.Contains(p, "another tool's uprobe there would end the process")
				if atBegin := i%2 == 0; !strings.HasPrefix(p, c.want) || atBegin && exclusive != (c.want == inline.Name) {
					t.Errorf("request %d runs %s", i, p)
				}
			}
			ours := 0
			if !c.before && c.sharing {
				work(m)
				n, ours = settle(t, g, sole), calls
			}
			work(m)
			gained(m, ours+calls)
			if n != nil {
				n.counts(theirs + calls)
				n.leave()
				work(m)
				gained(m, ours+2*calls)
			}
		})
	}
}

// TestNeighbourBeforeTrap: no breakpoint stands where another tool's uprobe does; the kernel
// would put the file's instruction over it.
func TestNeighbourBeforeTrap(t *testing.T) {
	g := rig.Start(t, buildShared(t))
	m := newRig(t, "", g)
	n := settle(t, g, []string{"push1", "nop5"})
	defer n.leave()
	work(m) // the kernel makes a call of the nop at the first hit
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

// TestInnerNop: a probe at a nop of five bytes inside of a function that keeps something below
// its stack pointer does not change the function's results, wherever the probe runs.
func TestInnerNop(t *testing.T) {
	const nop = 5 // bytes before it
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
