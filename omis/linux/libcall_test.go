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

func TestLibraryCalls(t *testing.T) {
	program := build(t, "library.c")
	want := subject.Alone(t, program)
	n := openNode(t)
	g := start(t, program)
	counts := make(map[string]int)
	var sum uint64
	var last string
	var cancels []func() error
	for _, name := range []string{"strtol", "qsort"} {
		for _, kind := range []node.EventKind{node.EventLibCallStarted, node.EventLibCallEnded} {
			cancel, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Name: name}, func(h *node.Hit) {
				counts[fmt.Sprint(name, kind)]++
				if name == "strtol" && kind == node.EventLibCallEnded {
					sum += h.Params[0].N
				}
				if name == "strtol" && kind == node.EventLibCallStarted && len(h.Params) > 2 {
					last = fmt.Sprint(h.Params[2].N)
				}
				if len(counts)%2 == 0 {
					go h.Hold()()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			cancels = append(cancels, cancel)
		}
	}
	_, err := n.Watch(node.Watch{Event: node.EventLibCallEnded, Proc: g.ID, Name: "frobnicate"}, func(*node.Hit) {})
	if err == nil {
		t.Error("a function that does not exist is watched")
	}
	t.Log(err)
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, cancel := range cancels {
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	// Of each hundred calls of qsort, longjmp leaves 34; the others compare once.
	const calls = 2 * (100 + 100 + 34 + 66)
	expect := map[string]int{
		fmt.Sprint("strtol", node.EventLibCallStarted): calls, fmt.Sprint("strtol", node.EventLibCallEnded): calls,
		fmt.Sprint("qsort", node.EventLibCallStarted): 200, fmt.Sprint("qsort", node.EventLibCallEnded): 2 * 66,
	}
	if fmt.Sprint(counts) != fmt.Sprint(expect) {
		t.Errorf("got %v, want %v", counts, expect)
	}
	if wantSum := uint64(2 * (4950 + 100*0x100 + 34*9 + 66*7)); sum != wantSum {
		t.Errorf("the results add up to %d, want %d", sum, wantSum)
	}
	if last != "10" && last != "16" {
		t.Errorf("the third parameter was %s", last)
	}
	checkUntouched(t, g)
}

// TestLibraryCallsKilled kills monitors that watch the ends of library calls.
func TestLibraryCallsKilled(t *testing.T) {
	for source, calls := range map[string][]string{"library.c": {""}, "thrower.cc": {"=risky", "=qsort"}} {
		program := build(t, source)
		want := subject.Alone(t, program)
		for i := range 6 {
			g := start(t, program)
			outlive(t, g, fmt.Sprintf("event-%d%s", node.EventLibCallEnded, calls[i%len(calls)]), time.Duration(i)*time.Millisecond)
			if got := g.Line(); got != want {
				t.Errorf("%s: got %s, want %s", source, got, want)
			}
		}
	}
}

// TestStopEvents checks that each stop and each continuation of a thread is reported once.
func TestStopEvents(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "3", endless)
	g.Begin()
	var stopped, continued atomic.Int64
	for kind, count := range map[node.EventKind]*atomic.Int64{node.EventThreadStopped: &stopped, node.EventThreadContinued: &continued} {
		if _, err := n.Watch(node.Watch{Event: kind, Proc: g.ID}, func(h *node.Hit) { count.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	tids, _ := n.Threads(g.ID)
	for range 2 {
		if err := n.Stop(g.ID, tids[1:2]); err != nil {
			t.Fatal(err)
		}
	}
	if stopped.Load() != 1 {
		t.Errorf("%d stops are reported, want 1", stopped.Load())
	}
	if err := n.Stop(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	if stopped.Load() != 4 || continued.Load() != 0 {
		t.Errorf("%d stopped, %d continued", stopped.Load(), continued.Load())
	}
	for range 2 {
		if err := n.Continue(g.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	if stopped.Load() != 4 || continued.Load() != 4 {
		t.Errorf("%d stopped, %d continued", stopped.Load(), continued.Load())
	}
}
