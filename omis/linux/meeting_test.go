//go:build linux && amd64

package linux

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// watchHeld watches the target's function, and counts the hits by the way in which threads are held.
func watchHeld(t *testing.T, n *Node, g *target, handle func(*node.Hit)) (met, stopped *atomic.Int64, cancel func() error) {
	t.Helper()
	met, stopped = new(atomic.Int64), new(atomic.Int64)
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) {
		switch h.Held {
		case node.HeldByRendezvous:
			met.Add(1)
		case node.HeldByPtrace:
			stopped.Add(1)
		}
		if handle != nil {
			handle(h)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return met, stopped, cancel
}

func TestMeeting(t *testing.T) {
	hammer := build(t, "hammer.c")
	for _, threads := range []int{1, 4, 50, 200} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			calls := 20000 / threads
			want := subject.Alone(t, hammer, fmt.Sprint(threads), fmt.Sprint(calls))
			n := openNode(t)
			g := start(t, hammer, fmt.Sprint(threads), fmt.Sprint(calls))
			met, stopped, cancel := watchHeld(t, n, g, nil)
			g.Begin()
			if got := g.Line(); got != want || met.Load() != int64(threads*calls) || stopped.Load() > 0 {
				t.Errorf("got %s with %d hits, and %d by ptrace, want %s", got, met.Load(), stopped.Load(), want)
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
			checkUntouched(t, g)
		})
	}
}

// TestHeldThread calls the other methods of the node for a thread that is held.
func TestHeldThread(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "1", endless)
	held := make(chan func(), 1)
	var tid atomic.Int64
	_, _, cancel := watchHeld(t, n, g, func(h *node.Hit) {
		tid.Store(int64(h.TID))
		held <- h.Hold()
	})
	g.Begin()
	next := func() func() {
		t.Helper()
		select {
		case release := <-held:
			return release
		case <-time.After(patienceOfTests):
			t.Fatal("no hit")
			return nil
		}
	}
	release := next()
	thread := int(tid.Load())
	before, err := n.ReadIntRegs(g.ID, thread, 0, intRegs)
	if err != nil || before[pcReg] != g.Addr {
		t.Fatalf("%x, %v", before, err)
	}
	release()
	release = next()
	if err := n.WriteIntRegs(g.ID, thread, 5, []uint64{77}); err != nil {
		t.Fatal(err)
	}
	if got, err := n.ReadIntRegs(g.ID, thread, 5, 1); err != nil || got[0] != 77 {
		t.Error(got, err)
	}
	if _, err := n.ReadFPRegs(g.ID, thread, 0, 1); err != nil {
		t.Error(err)
	}
	bts, err := n.Backtraces(g.ID, []int{thread}, 0)
	if err != nil || bts[0].Err != nil || len(bts[0].Frames) < 3 || bts[0].Frames[0].PC != g.Addr {
		t.Errorf("%x, %v", bts, err)
	}
	if err := n.Stop(g.ID, []int{thread}); err != nil {
		t.Error(err)
	}
	release()
	select {
	case <-held:
		t.Error("the thread continues although it is stopped")
	case <-time.After(50 * time.Millisecond):
	}
	if got, err := n.ReadIntRegs(g.ID, thread, pcReg, 1); err != nil || got[0] != g.Addr {
		t.Errorf("%x, %v", got, err)
	}
	if err := n.Continue(g.ID, []int{thread}); err != nil {
		t.Error(err)
	}
	release = next()
	if err := n.Suspend(g.ID, []int{thread}); err != nil {
		t.Error(err)
	}
	if err := n.Resume(g.ID, []int{thread}); err != nil {
		t.Error(err)
	}
	select {
	case <-held:
		t.Error("the thread continues although it is held")
	case <-time.After(20 * time.Millisecond):
	}
	// Cancel the watch while the thread is held.
	if err := cancel(); err != nil {
		t.Error(err)
	}
	if runs(t, n, g.ID, thread) {
		t.Error("the thread runs although it is held")
	}
	release()
	eventually(t, "the thread runs after its release", func() bool { return runs(t, n, g.ID, thread) })
	eventually(t, "the owner ends", func() bool { return n.owners.of(g.ID) == nil })
	checkUntouched(t, g)
}
