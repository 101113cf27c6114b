//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// followBirths sets a watch in every process that p creates, while the creating thread is held.
func followBirths(n *Node, p omis.ProcID, w node.Watch, handle func(*node.Hit), failed func(error)) error {
	_, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: p}, func(h *node.Hit) {
		pid, release := h.Child, h.Hold()
		go func() {
			defer release()
			w := w
			var err error
			if w.Proc, err = n.Identify(pid); err == nil {
				_, err = n.Watch(w, handle)
			}
			if err != nil {
				failed(fmt.Errorf("%d: %w", pid, err))
			}
		}()
	})
	return err
}

// TestBirth checks that no event of a new process is missed: from the first instruction of a forked child,
// and from the first instruction of the program that a vforked or spawned child executes.
func TestBirth(t *testing.T) {
	family := build(t, "family.c")
	const children = 10
	for mode, want := range map[string]int64{"fork": 100 * children, "vfork": children, "spawn": children} {
		t.Run(mode, func(t *testing.T) {
			n := openNode(t)
			g := start(t, family, mode, fmt.Sprint(children))
			w := node.Watch{Event: node.EventReachedAddr, Addr: g.Addr}
			if mode != "fork" {
				w = node.Watch{Event: node.EventSysCallStarted, Name: "exit_group"}
			}
			var hits atomic.Int64
			err := followBirths(n, g.ID, w, func(*node.Hit) { hits.Add(1) }, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			g.Begin()
			if got := g.Line(); got != "bad 0" {
				t.Error(got)
			}
			// The owner of the last child may not have reported its end yet.
			eventually(t, "all hits are reported", func() bool { return hits.Load() >= want })
			if hits.Load() != want {
				t.Errorf("%d hits in the children, want %d", hits.Load(), want)
			}
		})
	}
}

// TestNewbornIsKept checks that a new process does not begin while its creator is held, and that the event
// of its first thread follows the event of the process.
func TestNewbornIsKept(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "family.c"), "fork", "5")
	var mu sync.Mutex
	var told []string
	note := func(what string, h *node.Hit, pid int) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what)
		release := h.Hold()
		go func() {
			defer release()
			time.Sleep(5 * time.Millisecond)
			if info, err := n.ThreadInfo(identified(t, n, pid), pid, node.ThreadTotalTime); err != nil || info.TotalTime > 2*time.Millisecond {
				t.Errorf("the child has run for %v, %v", info.TotalTime, err)
			}
		}()
	}
	for _, w := range []node.Watch{{Event: node.EventProcCreated, Proc: g.ID}, {Event: node.EventThreadCreated, Proc: g.ID}} {
		what := map[node.EventKind]string{node.EventProcCreated: "process", node.EventThreadCreated: "thread"}[w.Event]
		if _, err := n.Watch(w, func(h *node.Hit) {
			if what == "thread" && (h.ChildProc != h.Child || h.Child == 0) {
				t.Errorf("thread %d of process %d", h.Child, h.ChildProc)
			}
			note(what, h, h.Child)
		}); err != nil {
			t.Fatal(err)
		}
	}
	g.Begin()
	if got := g.Line(); got != "bad 0" {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	if got, want := fmt.Sprint(told), "[process thread process thread process thread process thread process thread]"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// TestNewbornStaysStopped checks that a new process stays stopped while breakpoints are set and removed in
// its creator, which stops and continues the creator's threads.
func TestNewbornStaysStopped(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "family.c"), "fork", "5")
	_, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: g.ID}, func(h *node.Hit) {
		pid, release := h.Child, h.Hold()
		go func() {
			defer release()
			for range 3 {
				// Watch may fail, because the only thread is inside fork.
				if cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {}); err == nil {
					_ = cancel()
				}
			}
			if state, err := proc.ThreadState(pid, pid); state != "t" {
				t.Errorf("the child is in state %s (%v)", state, err)
			}
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Line(); got != "bad 0" {
		t.Error(got)
	}
}

func identified(t *testing.T, n *Node, pid int) omis.ProcID {
	id, err := n.Identify(pid)
	if err != nil {
		t.Error(err)
	}
	return id
}

// TestBirthKilled kills monitors that hold new processes.
func TestBirthKilled(t *testing.T) {
	family := build(t, "family.c")
	for _, mode := range []string{"fork", "vfork", "spawn"} {
		t.Run(mode, func(t *testing.T) {
			for range 4 {
				g := start(t, family, mode, "30")
				way := "birth" + []string{"", " nowarden"}[rand.IntN(2)]
				outlive(t, g, way, time.Duration(rand.IntN(20000))*time.Microsecond)
				if got := g.Finish(); got != "bad 0" {
					t.Errorf("%s: %s", way, got)
				}
			}
		})
	}
}

// TestKilledCreator checks that a held child begins although its creator is killed.
func TestKilledCreator(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "family.c"), "fork", "1")
	kept := make(chan int, 1)
	if _, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: g.ID}, func(h *node.Hit) {
		h.Hold()
		kept <- h.Child
	}); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	child := identified(t, n, <-kept)
	if err := n.Signal(g.ID, 9); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child begins, and ends", func() bool {
		_, err := n.Identify(child.PID)
		return err != nil
	})
}

// TestNewThreadIsKept checks that a new thread does not begin while its creator is held, and that both
// continue when the monitor is killed.
func TestNewThreadIsKept(t *testing.T) {
	sleepers := build(t, "sleepers.c")
	n := openNode(t)
	g := start(t, sleepers)
	var told atomic.Int64
	if _, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(h *node.Hit) {
		told.Add(1)
		tid, release := h.Child, h.Hold()
		go func() {
			defer release()
			time.Sleep(5 * time.Millisecond)
			state, err := proc.ThreadState(g.ID.PID, tid)
			for end := time.Now().Add(time.Minute); state == "R" && time.Now().Before(end); state, err = proc.ThreadState(g.ID.PID, tid) {
				time.Sleep(time.Millisecond) // on a busy machine the thread may not have reached its stop yet
			}
			if err != nil || state != "t" {
				t.Errorf("thread %d is in the state %s, %v", tid, state, err)
			}
			if info, err := n.ThreadInfo(g.ID, tid, node.ThreadParent); err != nil || info.Parent != g.ID.PID {
				t.Errorf("thread %d was created by %d, %v", tid, info.Parent, err)
			}
		}()
	}); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Finish(); got != "bad 0" || told.Load() != 7 {
		t.Errorf("%s with %d threads", got, told.Load())
	}

	g = start(t, sleepers)
	monitor := startMonitor(t, g, fmt.Sprintf("event-%d", node.EventThreadCreated))
	if said := monitor.Line(); said != "watching" {
		t.Fatal(said)
	}
	g.Begin()
	awaitHeld(t, g)
	monitor.Kill()
	if got := g.Finish(); got != "bad 0" {
		t.Error(got)
	}
}
