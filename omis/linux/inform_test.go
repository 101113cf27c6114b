//go:build linux && amd64

package linux

import (
	"strconv"
	"testing"

	"mirador/omis/node"
)

func TestThreadInfo(t *testing.T) {
	n, g, spin, wait, _ := startRegisters(t)
	tids := []int{g.ID.PID, spin, wait}
	for i, name := range []string{"main", "spin", "nap"} {
		want := gdbAddress(t, g.ID.PID, name)
		info, err := n.ThreadInfo(g.ID, tids[i], node.ThreadRootFunct|node.ThreadStackSize|node.ThreadParent)
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

// TestThreadInfos checks that reading many threads together returns the same as reading each of them.
func TestThreadInfos(t *testing.T) {
	n, g, spin, wait, _ := startRegisters(t)
	tids := []int{g.ID.PID, spin, wait}
	for _, f := range []node.ThreadFields{
		node.ThreadRootFunct, node.ThreadStackSize, node.ThreadRootFunct | node.ThreadStackSize,
		node.ThreadRootFunct | node.ThreadStackSize | node.ThreadParent | node.ThreadName,
	} {
		infos := n.ThreadInfos(g.ID, append(tids, 1), f) // 1 is a thread of another process
		if len(infos) != len(tids) {
			t.Errorf("fields %#x: %d of %d threads", f, len(infos), len(tids))
		}
		for _, tid := range tids {
			want, err := n.ThreadInfo(g.ID, tid, f)
			if got := infos[tid]; err != nil || got.RootFunction != want.RootFunction || got.StackSize != want.StackSize || got.Parent != want.Parent || got.Name != want.Name {
				t.Errorf("fields %#x, thread %d: %+v, want %+v (%v)", f, tid, got, want, err)
			}
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
	if err := n.CanDetect(node.EventNodeAdded); err == nil {
		t.Error("the node can detect EventNodeAdded")
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
