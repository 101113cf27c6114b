//go:build linux && amd64

package linux

import (
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestToggle sets and removes a breakpoint again and again while four threads on two processors reach it. A thread
// that is interrupted between the breakpoint and its signal must lose neither of them; otherwise it would continue
// in the middle of an instruction, and the sum would be wrong or the target would crash.
func TestToggle(t *testing.T) {
	hammer := build(t, "hammer.c")
	const threads, calls = "4", "20000000"
	want := subject.Alone(t, hammer, threads, calls)
	n := openNode(t)
	for rounds := 0; rounds < 20; { // on a busy machine one target may end before 20 rounds
		rounds += toggle(t, n, start(t, hammer, threads, calls), want)
	}
}

// toggle sets and removes the breakpoint until a target is done, and returns the number of rounds.
func toggle(t *testing.T, n *Node, g *target, want string) (rounds int) {
	t.Helper()
	g.Begin()
	said := make(chan string, 1)
	go func() { said <- g.Line() }() // do not wait for the target's end yet: wait would receive its ptrace stops
	watch := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}
	for {
		select {
		case got := <-said:
			if got != want {
				t.Errorf("after %d rounds the target wrote %q, want %q", rounds, got, want)
			}
			g.HangUp()
			if err := g.Cmd.Wait(); err != nil {
				t.Error(err)
			}
			return rounds
		default:
		}
		cancel, err := n.Watch(watch, func(*node.Hit) {})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		rounds++
	}
}
