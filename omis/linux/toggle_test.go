//go:build linux && amd64

package linux

import (
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestToggle plants and takes out a breakpoint again and again while four
// threads on two processors run into it. A thread that is interrupted between
// the breakpoint and its signal must not lose either: it would go on in the
// middle of an instruction, and the sum would be wrong, or the target dead.
func TestToggle(t *testing.T) {
	hammer := build(t, "hammer.c")
	const threads, calls = "4", "20000000"
	want := subject.Alone(t, hammer, threads, calls)
	n := openNode(t)
	for rounds := 0; rounds < 20; { // on a busy machine it takes more than one target
		rounds += toggle(t, n, start(t, hammer, threads, calls), want)
	}
}

// toggle does so until a target is done, and tells how often.
func toggle(t *testing.T, n *Node, g *target, want string) (rounds int) {
	t.Helper()
	g.Begin()
	said := make(chan string, 1)
	go func() { said <- g.Line() }() // its end is awaited later: a wait would see the stops of a tracee
	watch := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}
	for {
		select {
		case got := <-said:
			if got != want {
				t.Errorf("after %d rounds the target says %q, want %q", rounds, got, want)
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
