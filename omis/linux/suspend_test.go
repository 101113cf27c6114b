//go:build linux && amd64

package linux

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

func threadTime(t *testing.T, n *Node, p omis.ProcID, tid int) float64 {
	t.Helper()
	info, err := n.ThreadInfo(p, tid, node.ThreadTotalTime)
	if err != nil {
		t.Fatal(err)
	}
	return info.TotalTime.Seconds()
}

// runs reports whether a busy thread gets the processor. It does not count the time for which the thread is
// runnable, because the machine may have other work. It waits longer if the thread sleeps, as it does at a hit
// until the monitor runs, than if the thread is stopped.
func runs(t *testing.T, n *Node, p omis.ProcID, tid int) bool {
	t.Helper()
	const enough = 200
	before := threadTime(t, n, p, tid)
	for stood := 0; stood < enough; {
		time.Sleep(5 * time.Millisecond)
		if threadTime(t, n, p, tid) > before {
			return true
		}
		switch state, _ := proc.ThreadState(p.PID, tid); state {
		case "R":
			stood = 0
		case "T", "t":
			stood += enough / 20
		default:
			stood++
		}
	}
	return false
}

func TestSuspend(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", endless)
	g.Begin()
	tids, _ := n.Threads(g.ID)
	one, two := tids[1], tids[2]
	if !runs(t, n, g.ID, one) || !runs(t, n, g.ID, two) {
		t.Error("a thread does not run")
	}
	do := func(what string, f func(omis.ProcID, []int) error, tids []int, oneRuns, twoRuns bool) {
		t.Helper()
		if err := f(g.ID, tids); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if runs(t, n, g.ID, one) != oneRuns || runs(t, n, g.ID, two) != twoRuns {
			t.Errorf("after %s: want %v %v", what, oneRuns, twoRuns)
		}
	}
	do("suspending one", n.Suspend, []int{one}, false, true)
	do("suspending all", n.Suspend, nil, false, false)
	do("continuing all", n.Continue, nil, false, false)
	do("resuming one", n.Resume, []int{one}, false, false)
	do("resuming it again", n.Resume, []int{one}, true, false)
	wantError(t, n.Resume(g.ID, []int{one}), omis.ParameterError, "is not suspended")
	wantError(t, n.Resume(g.ID, []int{two, two}), omis.ParameterError, "is not suspended")
	do("stopping all", n.Stop, nil, false, false)
	do("resuming all", n.Resume, nil, false, false)
	do("continuing all", n.Continue, nil, true, true)
	wantError(t, n.Resume(g.ID, nil), omis.ParameterError, "is not suspended")
	checkUntouched(t, g)
}

func TestLetGo(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", endless)
	tids, _ := n.Threads(g.ID)
	one, two := tids[1], tids[2]
	var hitsOfOne, hitsOfTwo atomic.Int64
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(h *node.Hit) {
		if h.TID == one {
			hitsOfOne.Add(1)
		} else {
			hitsOfTwo.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.LetGo(g.ID, one); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if !runs(t, n, g.ID, one) || !runs(t, n, g.ID, two) {
		t.Error("a thread does not run")
	}
	if err := n.Stop(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	if !runs(t, n, g.ID, one) || runs(t, n, g.ID, two) {
		t.Error("the detached thread is stopped, or the other thread runs")
	}
	wantError(t, n.Stop(g.ID, []int{one}), omis.UnknownObject, "no thread")
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other thread has hits", func() bool { return hitsOfTwo.Load() > 0 })
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	if n := hitsOfOne.Load(); n != 0 {
		t.Errorf("the detached thread has %d hits", n)
	}
	checkUntouched(t, g)
}

func TestPriority(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "2", "10")
	tids, _ := n.Threads(g.ID)
	if err := n.SetThreadPriority(g.ID, tids[1], 5); err != nil {
		t.Fatal(err)
	}
	if own := niceOf(os.Getpid()); niceOf(tids[0]) != own || niceOf(tids[1]) != 5 { // g has inherited it
		t.Error(niceOf(tids[0]), niceOf(tids[1]), own)
	}
	if err := n.SetPriority(g.ID, 7); err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		if niceOf(tid) != 7 {
			t.Error(niceOf(tid))
		}
	}
	wantError(t, n.SetPriority(g.ID, 20), omis.ParameterError, "-20")
	wantError(t, n.SignalThread(g.ID, tids[1], 99), omis.ParameterError, "99")
	wantError(t, n.SignalThread(g.ID, 1, 9), omis.UnknownObject, "no thread 1")
	if err := n.SignalThread(g.ID, tids[1], int(unix.SIGTERM)); err != nil {
		t.Error(err)
	}
	awaitState(t, g.ID.PID, "Z")
}
