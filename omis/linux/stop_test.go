//go:build linux && amd64

package linux

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

func cpuTime(t *testing.T, n *Node, p omis.ProcID) float64 {
	t.Helper()
	info, err := n.ProcInfo(p, node.ProcTotalTime)
	if err != nil {
		t.Fatal(err)
	}
	return info.TotalTime.Seconds()
}

func TestStop(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "4", endless)
	g.Begin()
	for range 2 { // Stop is idempotent
		if err := n.Stop(g.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := cpuTime(t, n, g.ID)
	time.Sleep(50 * time.Millisecond)
	if after := cpuTime(t, n, g.ID); after != before {
		t.Errorf("the process used %v s of CPU time while stopped", after-before)
	}
	tids, _ := n.Threads(g.ID)
	if _, err := n.Backtraces(g.ID, tids, 4); err != nil {
		t.Error(err)
	}
	if err := n.Continue(g.ID, tids[1:2]); err != nil {
		t.Error(err)
	}
	eventually(t, "a thread runs", func() bool { return cpuTime(t, n, g.ID) > before })
	for range 2 {
		if err := n.Continue(g.ID, nil); err != nil {
			t.Error(err)
		}
	}
	checkUntouched(t, g)
	if err := n.Stop(g.ID, []int{1}); !isEnded(err) {
		t.Error(err)
	}
}

func TestHold(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "500"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	var held, hits atomic.Int64
	var wg sync.WaitGroup
	_, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) {
		hits.Add(1)
		held.Add(1)
		release := h.Hold()
		again := h.Hold()
		wg.Go(func() {
			held.Add(-1)
			release()
			release()
			again()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Finish(); got != want || hits.Load() != 2000 {
		t.Errorf("got %s with %d hits, want %s", got, hits.Load(), want)
	}
	wg.Wait()
}

func TestThreadEvents(t *testing.T) {
	family := build(t, "sleepers.c")
	n := openNode(t)
	g := start(t, family)
	var created, terminated, ended atomic.Int64
	done := make(chan struct{})
	for event, handle := range map[node.EventKind]func(*node.Hit){
		node.EventThreadCreated:    func(h *node.Hit) { created.Add(1) },
		node.EventThreadTerminated: func(h *node.Hit) { terminated.Add(1) },
		node.EventProcTerminated:   func(h *node.Hit) { ended.Store(terminated.Load()); close(done) },
	} {
		if _, err := n.Watch(node.Watch{Event: event, Proc: g.ID}, handle); err != nil {
			t.Fatal(err)
		}
	}
	g.Begin()
	g.Finish()
	<-done
	if created.Load() != 7 || ended.Load() < 7 {
		t.Errorf("%d threads created, %d terminated before the process", created.Load(), ended.Load())
	}
}

// TestStepsBack checks that an owner restores its scheduling policy after it has continued threads.
func TestStepsBack(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "4", endless)
	g.Begin()
	cancel, err := n.Watch(node.Watch{Event: node.EventThreadTerminated, Proc: g.ID}, func(*node.Hit) {})
	if err != nil {
		t.Fatal(err)
	}
	owner := int(n.owners.of(g.ID).box.thread.Load())
	for range 20 {
		if err := n.Stop(g.ID, nil); err != nil {
			t.Fatal(err)
		}
		if err := n.Continue(g.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the owner's policy is restored", func() bool {
		a, err := unix.SchedGetAttr(owner, 0)
		return err == nil && a.Policy == unix.SCHED_NORMAL
	})
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}
