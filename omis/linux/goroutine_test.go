//go:build linux && amd64

package linux

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// exitsOf are the addresses at which those functions of a program return that its own
// package has, all of them or those of some names.
func exitsOf(t *testing.T, path string, names ...string) (exits []uint64) {
	t.Helper()
	p := placesOf(t, node.Module{Path: path})
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if !strings.HasPrefix(s.Name, "main.") || len(names) > 0 && !slices.Contains(names, s.Name) || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		for _, at := range p.left {
			if at >= s.Value && at < s.Value+s.Size {
				exits = append(exits, at)
			}
		}
	}
	return exits
}

// TestPatchGoStorm puts code to the exits of functions in Go and takes it out, again and
// again, while goroutines are interrupted there. None goes on in the middle of a jump.
func TestPatchGoStorm(t *testing.T) {
	hogs := buildGo(t, "hogs")
	const rounds, times = "60000", 10
	want := subject.Alone(t, hogs, rounds)
	n := openNode(t)
	g := start(t, hogs, rounds)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	list := everywhere(ground, exitsOf(t, hogs))
	g.Begin()
	placed := 0
	for range times {
		made, errs := n.Patch(g.ID, list)
		for _, err := range errs {
			if err != nil && !strings.Contains(err.Error(), "a goroutine was interrupted in its middle") {
				t.Error(err)
			}
		}
		made = slices.DeleteFunc(made, func(p node.Patched) bool { return p == nil })
		placed += len(made)
		activate(t, made)
		time.Sleep(time.Millisecond)
		if err := n.Unpatch(g.ID, made); err != nil {
			t.Error(err)
		}
	}
	if placed < times*len(list)/2 {
		t.Errorf("%d of %d exits got code", placed, times*len(list))
	}
	checkText(t, g)
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// No jump is written over an address that a goroutine has on its stack: it may have been
// interrupted there.
func TestPatchBesideGoroutine(t *testing.T) {
	hogs := buildGo(t, "hogs")
	exit := exitsOf(t, hogs, "main.outer")[0]
	const pop = 1 // the instruction before the return, within what a jump takes
	for _, where := range []struct {
		addr uint64
		want string
	}{
		{exit, ""}, // behind the jump
		{exit - pop, "a goroutine was interrupted in its middle"},
	} {
		n := openNode(t)
		g := start(t, hogs, "10", fmt.Sprint(where.addr))
		ground, err := n.Ground(g.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, errs := n.Patch(g.ID, everywhere(ground, []uint64{exit}))
		switch {
		case where.want == "" && errs[0] != nil:
			t.Error(errs[0])
		case where.want != "" && (errs[0] == nil || !strings.Contains(errs[0].Error(), where.want)):
			t.Errorf("%v, want %s", errs[0], where.want)
		}
	}
}
