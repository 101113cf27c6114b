//go:build linux && amd64

package linux

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestSignalEvents checks that each signal is reported once and delivered, whether the thread is held or not.
func TestSignalEvents(t *testing.T) {
	signals := build(t, "signals.c")
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			want := subject.Alone(t, signals, "own")
			n := openNode(t)
			g := start(t, signals, "own")
			var told, traps atomic.Int64
			cancel, err := n.Watch(node.Watch{Event: node.EventSignal, Proc: g.ID}, func(h *node.Hit) {
				told.Add(1)
				if h.Signal == int(unix.SIGTRAP) {
					traps.Add(1)
				}
				if held && told.Load()%8 == 0 {
					go h.Hold()()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			g.Begin()
			if got := g.Line(); got != want || traps.Load() != 240 || told.Load() < 250 {
				t.Errorf("got %s with %d signals, %d traps, want %s", got, told.Load(), traps.Load(), want)
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
			if s, _ := n.Threads(g.ID); len(s) == 0 {
				t.Error("the target has ended")
			}
		})
	}
}

// TestHeldSignalKilled checks that the target receives the signal for which it is held, whether the monitor
// releases it or is killed.
func TestHeldSignalKilled(t *testing.T) {
	hammer := build(t, "hammer.c")
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGSEGV} {
		g := start(t, hammer, "2", "10")
		n := openNode(t)
		held := make(chan func(), 1)
		if _, err := n.Watch(node.Watch{Event: node.EventSignal, Proc: g.ID, Signals: []int{int(sig)}}, func(h *node.Hit) { held <- h.Hold() }); err != nil {
			t.Fatal(err)
		}
		if err := n.Signal(g.ID, int(sig)); err != nil {
			t.Fatal(err)
		}
		release := <-held
		tids, _ := n.Threads(g.ID)
		if _, err := n.Backtraces(g.ID, tids, 0); err != nil {
			t.Error(err)
		}
		awaitHeld(t, g)
		release()
		awaitState(t, g.ID.PID, "Z")
		select {
		case <-held:
			t.Error("the signal was reported twice")
		default:
		}

		g = start(t, hammer, "2", "10")
		monitor := startMonitor(t, g, fmt.Sprintf("event-%d", node.EventSignal))
		if said := monitor.Line(); said != "watching" {
			t.Fatal(said)
		}
		unix.Kill(g.ID.PID, sig)
		time.Sleep(20 * time.Millisecond)
		awaitHeld(t, g)
		monitor.Kill()
		awaitState(t, g.ID.PID, "Z")
	}
}

// awaitHeld waits until a tracer holds any thread of a target: the kernel chooses the thread that gets a
// process's signal.
func awaitHeld(t *testing.T, g *target) {
	t.Helper()
	eventually(t, "a thread is held", func() bool {
		tids, err := proc.Threads(g.ID.PID)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(tids, func(tid int) bool {
			state, err := proc.ThreadState(g.ID.PID, tid)
			return err == nil && state == "t"
		})
	})
}
