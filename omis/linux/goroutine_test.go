//go:build linux && amd64

package linux

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// exitsOf returns the addresses of the return instructions in the functions of a program's package main, or
// only in the functions with the given names.
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
		for _, at := range p.exits {
			if at >= s.Value && at < s.Value+s.Size {
				exits = append(exits, at)
			}
		}
	}
	return exits
}

// TestPatchGoStorm patches the exits of functions in Go and removes the patches, again and again, while
// goroutines are interrupted there. No goroutine may continue in the middle of a jump.
func TestPatchGoStorm(t *testing.T) {
	hogs := buildGo(t, "hogs")
	patchGoStorm(t, hogs, "60000", exitsOf(t, hogs), "a goroutine was interrupted in its middle")
}

// patchGoStorm patches addresses of a Go program and removes the patches, ten times while the program runs. It
// checks that the results are right, that only the given reasons prevent patches, and that these prevent at most
// half of the patches.
func patchGoStorm(t *testing.T, path, rounds string, addrs []uint64, reasons ...string) {
	t.Helper()
	const times = 10
	want := subject.Alone(t, path, rounds)
	n := openNode(t)
	g := start(t, path, rounds)
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	list := everywhere(ground, addrs)
	g.Begin()
	placed := 0
	for range times {
		made, errs := patchBriefly(t, n, g, list)
		for _, err := range errs {
			if err != nil && !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(err.Error(), r) }) {
				t.Error(err)
			}
		}
		placed += made
	}
	if placed < times*len(list)/2 {
		t.Errorf("%d of %d patches were placed", placed, times*len(list))
	}
	checkText(t, g)
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPatchBesideGoroutine checks that no jump is written over an address that is on the stack of a
// goroutine, because the goroutine may have been interrupted there.
func TestPatchBesideGoroutine(t *testing.T) {
	hogs := buildGo(t, "hogs")
	exit := exitsOf(t, hogs, "main.outer")[0]
	const pop = 1 // length of the instruction before the return, which the jump replaces too
	for _, where := range []struct {
		addr uint64
		want string
	}{
		{exit, ""}, // not inside the jump
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
