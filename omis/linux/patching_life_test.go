//go:build linux && amd64

package linux

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
	"mirador/omis/program"
)

// takeOver kills a monitor that has patched a process, and returns the next node with the ground and the patches
// that it finds.
func takeOver(t *testing.T, g *target) (*Node, node.Ground, []node.Patched) {
	t.Helper()
	leaveMonitor(t, g, "patch")
	n := openNode(t)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	return n, ground, ground.(node.Leftover).Left()
}

// TestPatchLeft checks that the patches of a killed monitor continue to count, and that the next monitor finds and
// removes them.
func TestPatchLeft(t *testing.T) {
	g := start(t, build(t, "hammer.c"), "4", endless)
	g.Begin()
	for range 3 {
		n, ground, left := takeOver(t, g)
		if len(left) == 0 {
			t.Fatal("the killed monitor left no patch")
		}
		if !slices.ContainsFunc(left, func(p node.Patched) bool { return p.Addr() == g.Addr }) {
			t.Errorf("there is no patch at %#x", g.Addr)
		}
		before := counted(ground, 0)
		eventually(t, "the patches continue to count", func() bool { return counted(ground, 0) > before })
		if err := n.Unpatch(g.ID, left); err != nil {
			t.Fatal(err)
		}
		checkUntouched(t, g)
		made := mustPatch(t, n, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, 64)}})
		if err := n.Unpatch(g.ID, made); err != nil {
			t.Fatal(err)
		}
		if err := ground.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if maps, err := procMaps(g.ID.PID); err != nil {
		t.Fatal(err)
	} else if n := len(slices.DeleteFunc(maps, func(m proc.Mapping) bool { return m.Path != "/memfd:mirador patches (deleted)" })); n != 1 {
		t.Errorf("%d shared memories are mapped, want 1", n)
	}
}

// TestPatchLeftPartly removes the patches of a killed monitor one after the other, and inserts a new patch at the
// address of one of them: both count all calls.
func TestPatchLeftPartly(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "400000"}
	want := subject.Alone(t, hammer, args...)
	g := start(t, hammer, args...)
	n, ground, left := takeOver(t, g)
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	entry := slices.IndexFunc(left, func(p node.Patched) bool { return p.Addr() == g.Addr })
	if entry < 0 || len(left) < 3 {
		t.Fatalf("%d patches are left, the patch at the entry has the index %d", len(left), entry)
	}
	left[0], left[entry] = left[entry], left[0]
	const ours = 1 << 20
	beside := mustPatch(t, n, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, ours)}})
	activate(t, beside)
	g.Begin()
	for _, p := range left[1:] {
		if err := n.Unpatch(g.ID, []node.Patched{p}); err != nil {
			t.Fatal(err)
		}
		if p.Covers(p.Addr()) {
			t.Errorf("a removed patch is still at %#x", p.Addr())
		}
	}
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if counted(ground, 0) != 4*400000 || counted(ground, ours) != 4*400000 {
		t.Errorf("the killed monitor's patch counted %d, the new patch %d", counted(ground, 0), counted(ground, ours))
	}
	if err := n.Unpatch(g.ID, append(beside, left[0])); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}

// TestPatchKilledThenClean kills monitors at different moments, and removes their patches by the next monitor.
func TestPatchKilledThenClean(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "3000000"}
	want := subject.Alone(t, hammer, args...)
	g := start(t, hammer, args...)
	g.Begin()
	for i := range 20 {
		monitor := startMonitor(t, g, "repatch")
		time.Sleep(time.Duration(i*i) * 50 * time.Microsecond)
		monitor.Kill()
		n := openNode(t)
		ground, err := n.Ground(g.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Unpatch(g.ID, ground.(node.Leftover).Left()); err != nil {
			t.Fatal(err)
		}
		checkUntouched(t, g)
		if err := ground.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPatchFamily checks that patches are off in children with their own memory, and vanish with the program.
func TestPatchFamily(t *testing.T) {
	family := build(t, "family.c")
	want := map[string]uint64{"fork": 100 + 30*100, "spawn": 100 + 30*100, "vfork": 100 + 60*100, "exec": 100}
	for mode, count := range want {
		for _, followed := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " ", followed), func(t *testing.T) {
				n := openNode(t)
				g := start(t, family, mode, "30")
				ground, err := n.Ground(g.ID)
				if err != nil {
					t.Fatal(err)
				}
				made := mustPatch(t, n, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, 0)}})
				activate(t, made)
				if followed {
					if _, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: g.ID}, func(*node.Hit) {}); err != nil {
						t.Fatal(err)
					}
				}
				g.Begin()
				if got := g.Line(); got != "bad 0" {
					t.Error(got)
				}
				if got := counted(ground, 0); got != count {
					t.Errorf("%d calls, want %d", got, count)
				}
				if gone := ground.Gone(); gone != (mode == "exec") {
					t.Errorf("Gone returns %v", gone)
				}
				if err := n.Unpatch(g.ID, made); err != nil {
					t.Error(err)
				}
				checkText(t, g)
			})
		}
	}
}

// TestPatchOneMonitor checks that only one monitor at a time can patch a process.
func TestPatchOneMonitor(t *testing.T) {
	g := start(t, build(t, "hammer.c"), "4", endless)
	g.Begin()
	one, other := openNode(t), openNode(t)
	ground, err := one.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	made := mustPatch(t, one, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, 0)}})
	activate(t, made)
	var refusal *program.Refusal
	if _, err := other.Ground(g.ID); !errors.As(err, &refusal) || !strings.Contains(refusal.Why, "another monitor") {
		t.Errorf("the error of the other monitor is %v", err)
	}
	before := counted(ground, 0)
	eventually(t, "the patch continues to count", func() bool { return counted(ground, 0) > before })
	if err := errors.Join(one.Unpatch(g.ID, made), ground.Close()); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
	next, err := other.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
