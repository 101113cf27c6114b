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

// startKept starts a program whose thread enters a signal handler as soon as the node makes it
// execute a call; the handler waits for a line. The node waits only briefly for calls.
func startKept(t *testing.T, keeper string) (*Node, *target) {
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

// TestAbandonedCall checks that the node does not wait for a call that a signal handler delays. The
// thread executes the call later and continues; meanwhile it can execute other calls in the handler.
func TestAbandonedCall(t *testing.T) {
	keeper := build(t, "keeper.c")
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			n, g := startKept(t, keeper)
			var maps int
			_, err := n.Watch(node.Watch{Event: node.EventSysCallStarted, Proc: g.ID, Name: "mmap"}, func(*node.Hit) { maps++ })
			if err != nil {
				t.Fatal(err)
			}
			watch := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}
			if _, err := n.Watch(watch, func(*node.Hit) {}); err == nil {
				t.Error("the node waited for the delayed call")
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
				t.Errorf("%s: %d hits, want %d; %d reported calls are the monitor's, not the program's", got, count, want, maps)
			}
		})
	}
}

// TestAbandonedChild checks that a child and its parent continue although a signal handler delays the
// calls by which the node cleans the child before it detaches.
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

// TestImpatience abandons calls at random moments, in one program without signals and in one with many.
// The programs compute the same as alone, and a later monitor can use them without failures.
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
					t.Errorf("%d of 5 uses failed although the monitor waited for calls", failed)
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

// beImpatient uses a process by a monitor that waits at most 50 µs for calls, and returns the number of
// failures.
func beImpatient(t *testing.T, g *target) (failed int) {
	t.Helper()
	n := openNode(t)
	n.callPatience = time.Duration(rand.IntN(50)) * time.Microsecond
	failed = use(n, g)
	t.Logf("%d of 5 failed with %v", failed, n.callPatience)
	return failed
}

// use prepares a process five times for patches and for breakpoints, and returns the number of failures.
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
