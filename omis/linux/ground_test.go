//go:build linux && amd64

package linux

import (
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestGroundLocked checks that a patched program that locks all its memory does not get memory for the whole
// range that it shares with the monitor.
func TestGroundLocked(t *testing.T) {
	frugal := build(t, "frugal.c", "-pthread")
	n := openNode(t)
	g := start(t, frugal)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(ground.Shared()); size < 1<<36 {
		t.Fatalf("it shares only %d bytes", size)
	}
	made := mustPatch(t, n, g.ID, []node.Patch{{Addr: g.Addr, Make: counting(ground, 0)}})
	activate(t, made)
	for calls := uint64(100); calls <= 300; calls += 100 {
		g.Tell("lock")
		if line := g.Line(); !strings.HasPrefix(line, "sum ") || counted(ground, 0) != calls {
			t.Fatalf("%s; %d counted, want %d", line, counted(ground, 0), calls)
		}
	}
	if err := n.Unpatch(g.ID, made); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
}

// TestGroundModest checks that a process with a limit on its memory keeps most of it.
func TestGroundModest(t *testing.T) {
	frugal := build(t, "frugal.c", "-pthread")
	for careful, most := range map[string]int{"limited": 4 << 30 / 8, "locking": 4 << 20} {
		n := openNode(t)
		g := start(t, frugal, careful)
		ground, err := n.Ground(g.ID)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(ground.Shared()); size > most {
			t.Errorf("%s: it shares %d bytes, want %d at most", careful, size, most)
		}
		g.Begin()
		if line := g.Line(); !strings.HasPrefix(line, "sum ") {
			t.Errorf("%s: %s", careful, line)
		}
	}
}

// TestGroundTimeless checks that a process that may not read the time stamp counter cannot be patched.
func TestGroundTimeless(t *testing.T) {
	frugal := build(t, "frugal.c", "-pthread")
	want := subject.Alone(t, frugal, "timeless")
	n := openNode(t)
	g := start(t, frugal, "timeless")
	if _, err := n.Ground(g.ID); err == nil || !strings.Contains(err.Error(), "time stamp counter") {
		t.Errorf("a process that may not read the time stamp counter: %v", err)
	}
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
