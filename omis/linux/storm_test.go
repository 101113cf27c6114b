//go:build linux && amd64

package linux

import (
	"testing"
	"time"

	"mirador/omis/node"
)

// TestExecStorm attaches to a process while its threads call execve again and again. The execve of a thread
// that is not traced yet removes the traced threads, and the kernel does not report that execve.
func TestExecStorm(t *testing.T) {
	g := start(t, build(t, "life.c"), "exec", "700")
	n := openNode(t)
	done := make(chan string, 1)
	g.Begin()
	go func() { done <- g.Line() }()
	late := 0 // requests that may have waited for a thread that does not exist any more
	for requests := 1; ; requests++ {
		select {
		case got := <-done:
			t.Logf("%d requests, %d of them late", requests, late)
			if got != "calls 0 bad 0" || late > requests/6 {
				t.Errorf("%s, %d of %d requests took %v or more", got, late, requests, patience)
			}
			return
		default:
			begin := time.Now()
			attachOnce(t, n, g, requests%2 == 0)
			if time.Since(begin) >= patience {
				late++
			}
		}
	}
}

// attachOnce attaches for a moment, to the whole process or to the threads that it finds.
func attachOnce(t *testing.T, n *Node, g *target, whole bool) {
	if whole {
		cancel, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(*node.Hit) {})
		if err != nil {
			t.Error(err)
		} else if err := cancel(); err != nil {
			t.Error(err)
		}
		return
	}
	tids, err := n.Threads(g.ID)
	if err != nil {
		t.Error(err)
	}
	if _, err := n.Backtraces(g.ID, tids, 3); err != nil {
		t.Error(err)
	}
}
