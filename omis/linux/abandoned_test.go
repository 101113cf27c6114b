//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// kept starts a program, and has its thread go into a signal handler which waits for a
// line, as soon as it is to make a call for a monitor that has no patience.
func kept(t *testing.T, keeper string) (*Node, *target) {
	t.Helper()
	n := openNode(t)
	n.callPatience = 50 * time.Millisecond
	g := start(t, keeper)
	if err := n.Suspend(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(g.PID, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	return n, g
}

const keeperSays = "8881230393482038415"

// TestAbandonedCall: a call that a signal handler keeps is not waited for. The program
// makes it some day and goes on; meanwhile others can be made, in the handler.
func TestAbandonedCall(t *testing.T) {
	keeper := build(t, "keeper.c")
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			n, g := kept(t, keeper)
			var maps int
			_, err := n.Watch(node.Watch{Event: node.EventSysCallStarted, Proc: g.ID, Name: "mmap"}, func(*node.Hit) { maps++ })
			if err != nil {
				t.Fatal(err)
			}
			watch := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}
			if _, err := n.Watch(watch, func(*node.Hit) {}); err == nil {
				t.Error("it was waited for")
			}
			count, want := 0, 0
			if again {
				if _, err := n.Watch(watch, func(*node.Hit) { count++ }); err != nil {
					t.Fatal(err)
				}
				want = 1000
			}
			if err := n.Resume(g.ID, nil); err != nil {
				t.Fatal(err)
			}
			g.Begin()
			if got := g.Line(); got != keeperSays {
				t.Error(got)
			}
			if got := g.Line(); got != "over" || count != want || maps != 0 {
				t.Errorf("%s: %d hits, want %d; %d calls told that are not the program's", got, count, want, maps)
			}
		})
	}
}

// TestAbandonedChild: a child that is cleaned and let go is kept by a signal handler, and
// goes on, as its parent does.
func TestAbandonedChild(t *testing.T) {
	n := openNodeWith(t, Config{Ptrace: true})
	n.callPatience = 50 * time.Millisecond
	g := start(t, build(t, "keeper.c"), "fork")
	count, cancel := watchWork(t, n, g)
	_, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: g.ID}, func(h *node.Hit) {
		if err := unix.Kill(h.Child, unix.SIGUSR1); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	g.IsSilent(200 * time.Millisecond)
	g.Begin()
	if got := g.Line(); got != keeperSays {
		t.Error(got)
	}
	if got := g.Line(); got != "over" || count.Load() != 0 {
		t.Errorf("%s, %d hits", got, count.Load())
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
}

// TestImpatience has calls given up at any moment. The programs, of which one is
// interrupted by signals all the time, do what they do alone, and a monitor with patience
// does what it does with any.
func TestImpatience(t *testing.T) {
	for program, args := range map[string][]string{"hammer.c": {"4", "20000"}, "maze.c": {"2000"}} {
		t.Run(program, func(t *testing.T) {
			path := build(t, program, "-w")
			want := subject.Alone(t, path, args...)
			for range 3 {
				g := start(t, path, args...)
				g.Begin()
				given := beImpatient(t, g)
				if got := g.Line(); got != want {
					t.Fatalf("got %s, want %s after %d calls were given up", got, want, given)
				}
				if failed := use(openNode(t), g); failed != 0 {
					t.Errorf("%d of 5 failed with patience", failed)
				}
				checkUntouched(t, g)
				g.HangUp()
				if err := g.Cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// beImpatient returns how often a monitor that hardly waits has failed.
func beImpatient(t *testing.T, g *target) (failed int) {
	t.Helper()
	n := openNode(t)
	n.callPatience = time.Duration(rand.IntN(50)) * time.Microsecond
	failed = use(n, g)
	t.Logf("%d of 5 failed with %v", failed, n.callPatience)
	return failed
}

// use has a monitor prepare a process for code and for breakpoints, five times, and
// returns how often it cannot.
func use(n *Node, g *target) (failed int) {
	for range 5 {
		_, err := n.Ground(g.ID)
		cancel, e := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
		if e == nil {
			e = cancel()
		}
		if err != nil || e != nil {
			failed++
		}
	}
	return failed
}
