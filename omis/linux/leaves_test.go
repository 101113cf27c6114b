//go:build linux && amd64

package linux

import (
	"debug/elf"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// leaves has the functions of testdata/leaves without a check of the stack, and the calls of each in a round.
// In one round of a hundred, the method second is called once more, and panics.
var leaves = map[string]int{
	"main.(*node).second": 1, "main.(*node).length": 1, "main.(*node).add": 1, "main.mix": 1, "main.least": 1, "main.above": 1, "main.below": 1,
}

// entriesOf returns the names and entries of a program's functions.
func entriesOf(t *testing.T, path string, wanted func(name string) bool) (names []string, entries []uint64) {
	t.Helper()
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
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && wanted(s.Name) {
			names, entries = append(names, s.Name), append(entries, s.Value)
		}
	}
	return names, entries
}

func isLeaf(name string) bool { return leaves[name] > 0 }

// TestPatchGoLeaves patches functions in Go that do not check the stack, also functions whose first
// instruction may fault. Calls that panic there are not counted; the program recovers from them as without
// the patch, and Misses reports that.
func TestPatchGoLeaves(t *testing.T) {
	path := buildGo(t, "leaves")
	const rounds, goroutines = 20000, 8
	want := subject.Alone(t, path, strconv.Itoa(rounds))
	n := openNode(t)
	g := start(t, path, strconv.Itoa(rounds))
	ground, err := n.Ground(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	names, addrs := entriesOf(t, path, isLeaf)
	if len(names) != len(leaves) {
		t.Fatal(names)
	}
	made, errs := n.Patch(g.ID, everywhere(ground, addrs))
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		late := strings.HasPrefix(names[i], "main.(*node)")
		if notes := made[i].Misses(); strings.Contains(notes, "panics") != late {
			t.Errorf("%s: %q", names[i], notes)
		}
	}
	activate(t, made)
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, name := range names {
		wanted := uint64(leaves[name] * rounds * goroutines)
		if name == "main.mix" {
			wanted += goroutines // each goroutine also calls it once for its sum
		}
		if got := counted(ground, uint64(i)*64); got != wanted {
			t.Errorf("%s: %d calls, want %d", name, got, wanted)
		}
	}
	if err := n.Unpatch(g.ID, made); err != nil {
		t.Error(err)
	}
	checkText(t, g)
}

// TestPatchGoLeavesStorm patches such functions and removes the patches, again and again, while goroutines are
// interrupted and panic in them.
func TestPatchGoLeavesStorm(t *testing.T) {
	path := buildGo(t, "leaves")
	_, addrs := entriesOf(t, path, func(name string) bool { return strings.HasPrefix(name, "main.") })
	patchGoStorm(t, path, "100000", addrs, "goroutine was interrupted", "first instructions")
}
