//go:build linux && amd64

package linux

import (
	"strconv"
	"testing"

	"mirador/omis"
)

func TestThreadInfo(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "registers.c"))
	g.Line()
	tids, err := n.Threads(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	awaitState(t, tids[2], "S")
	for i, name := range []string{"main", "spin", "nap"} {
		want := gdbAddress(t, g.ID.PID, name)
		info, err := n.ThreadInfo(g.ID, tids[i], omis.ThreadRootFunct|omis.ThreadStackSize|omis.ThreadParent)
		if err != nil {
			t.Fatal(err)
		}
		if info.RootFunction != want {
			t.Errorf("%s: root function %#x, want %#x", name, info.RootFunction, want)
		}
		if info.StackSize < 0x10000 || info.Parent != 0 {
			t.Errorf("%s: stack of %d bytes, created by %d", name, info.StackSize, info.Parent)
		}
	}
	checkUntouched(t, g)
}

func TestNodeInfo(t *testing.T) {
	n := openNode(t)
	values, err := n.NodeInfo(1)
	if err != nil || len(values) == 0 {
		t.Error(values, err)
	}
	if err := n.CanDetect(omis.EventNodeAdded); err == nil {
		t.Error("nodes are added")
	}
}

func gdbAddress(t *testing.T, pid int, function string) uint64 {
	t.Helper()
	expression := "(long)&" + function
	v, err := strconv.ParseUint(gdbValues(t, pid, pid, []string{expression})[expression], 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
