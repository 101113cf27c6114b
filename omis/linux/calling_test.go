//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// startCalling starts a program whose threads wait in system calls. called returns the number of calls of
// the function at the target's address.
func startCalling(t *testing.T, n *Node) (g *target, waiting []int, called func() int) {
	t.Helper()
	g = start(t, build(t, "calling.c"))
	var counter uint64
	if _, err := fmt.Sscanf(g.Line(), "%v", &counter); err != nil {
		t.Fatal(err)
	}
	tids, err := n.Threads(g.ID)
	if err != nil || len(tids) != 6 {
		t.Fatal(tids, err)
	}
	for _, tid := range tids[1:] {
		awaitState(t, tid, "S")
	}
	return g, tids[1:], func() int {
		var b [8]byte
		if _, err := n.ReadMemory(g.ID, counter, b[:]); err != nil {
			t.Fatal(err)
		}
		return int(binary.LittleEndian.Uint64(b[:]))
	}
}

// TestCallInSystemCall makes threads that wait in system calls call a function that changes all registers
// and the memory below its stack pointer. The threads repeat their system calls with the right results, and
// timeouts do not change.
func TestCallInSystemCall(t *testing.T) {
	n := openNode(t)
	g, waiting, called := startCalling(t, n)
	want := 0
	for range 3 {
		for _, tid := range waiting {
			if err := n.Call(g.ID, tid, g.Addr); err != nil {
				t.Fatal(err)
			}
			want++
		}
		eventually(t, "all functions are called", func() bool { return called() == want })
	}
	// A stopped thread calls the function when it is continued.
	if err := n.Stop(g.ID, waiting[:1]); err != nil {
		t.Fatal(err)
	}
	if err := n.Call(g.ID, waiting[0], g.Addr); err != nil {
		t.Fatal(err)
	}
	if now := called(); now != want {
		t.Errorf("a stopped thread has called the function: %d calls of %d", now, want)
	}
	want++
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the function is called when the thread is continued", func() bool { return called() == want })
	for _, tid := range waiting {
		awaitState(t, tid, "S") // a futex that changes before it waits again is EAGAIN
	}
	g.Begin()
	if got := g.Line(); got != "read ok, poll ok, epoll ok, futex ok, sleep ok" {
		t.Error(got)
	}
	checkUntouched(t, g)
}

// TestStopSparesEINTR checks that stopping a thread in epoll_wait does not make the call fail, as the
// kernel alone would, and that a signal of the program still makes it fail.
func TestStopSparesEINTR(t *testing.T) {
	n := openNode(t)
	g, waiting, _ := startCalling(t, n)
	for range 3 {
		for _, tid := range waiting {
			if _, err := n.ReadIntRegs(g.ID, tid, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := n.Stop(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.Continue(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	// All wait again: a futex whose value changes before its thread waits again answers EAGAIN,
	// after any stop.
	for _, tid := range waiting {
		awaitState(t, tid, "S")
	}
	if err := unix.Tgkill(g.PID, waiting[2], unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Line(); got != "read ok, poll ok, epoll -4, futex ok, sleep ok" {
		t.Error(got)
	}
	checkUntouched(t, g)
}
