//go:build linux && amd64

package linux

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// watchWork counts the hits of the target's function.
func watchWork(t *testing.T, n *Node, g *target) (hits *atomic.Int64, cancel func() error) {
	t.Helper()
	hits = new(atomic.Int64)
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) { hits.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	return hits, cancel
}

// TestWaiting sets and removes breakpoints while threads are in every kind of waiting system call.
func TestWaiting(t *testing.T) {
	sleepers := build(t, "sleepers.c")
	n := openNode(t)
	g := start(t, sleepers)
	g.Begin()
	done := make(chan string, 1)
	go func() { done <- g.Line() }()
	for {
		select {
		case got := <-done:
			if got != "bad 0" {
				t.Error(got)
			}
			return
		default:
			cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
			if err != nil && !isEnded(err) {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			if err == nil {
				cancel()
			}
		}
	}
}

func TestBlockedTrap(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "3000", "block"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	hits, _ := watchWork(t, n, g)
	g.Begin()
	if got := g.Finish(); got != want || hits.Load() != 12000 {
		t.Errorf("got %s with %d hits, want %s", got, hits.Load(), want)
	}
}

// TestBlockedTrapKilled kills the monitor of a target that blocks SIGTRAP. The kernel then resets the handler
// at each hit, and the monitor must set it again before it can be killed.
func TestBlockedTrapKilled(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "12000", "block"}
	want := subject.Alone(t, hammer, args...)
	for range 5 {
		g := start(t, hammer, args...)
		outlive(t, g, "plant nowarden ptrace", 200*time.Millisecond)
		if got := g.Finish(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSignals(t *testing.T) {
	signals := build(t, "signals.c")
	for _, mode := range []string{"plain", "own", "masked"} {
		t.Run(mode, func(t *testing.T) {
			want := subject.Alone(t, signals, mode)
			n := openNodeWith(t, Config{Ptrace: mode == "masked"}) // jumps do not depend on the mask
			g := start(t, signals, mode)
			hits, cancel := watchWork(t, n, g)
			g.Begin()
			if got := g.Line(); got != want || hits.Load() < 12000 {
				t.Errorf("got %s with %d hits, want %s", got, hits.Load(), want)
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
			checkMask(t, g, mode)
		})
		t.Run(mode+" killed", func(t *testing.T) {
			want := subject.Alone(t, signals, mode)
			for range 5 {
				g := start(t, signals, mode)
				outlive(t, g, "plant nowarden ptrace", time.Duration(rand.IntN(30))*time.Millisecond)
				if got := g.Line(); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				watchAndCancel(t, g) // by the next monitor
				checkMask(t, g, mode)
			}
		})
	}
}

// TestOwnTraps prepares a program that executes INT3 itself for breakpoints, and detaches, again and again. None
// of the program's own traps may be lost while its threads execute the monitor's calls.
func TestOwnTraps(t *testing.T) {
	traps := build(t, "traps.c")
	n := openNodeWith(t, Config{Ptrace: true})
	g := start(t, traps)
	g.Begin()
	for range 40 {
		_, cancel := watchWork(t, n, g)
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
	}
	g.Begin()
	if got := g.Finish(); got != "missed 0" {
		t.Error(got)
	}
}

// checkMask checks that the mask of the program's signal handler is the original one.
func checkMask(t *testing.T, g *target, mode string) {
	t.Helper()
	g.Begin()
	if got, want := g.Line(), map[bool]string{true: "blocked 1", false: "blocked 0"}[mode == "masked"]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func watchAndCancel(t *testing.T, g *target) {
	t.Helper()
	_, cancel := watchWork(t, openNodeWith(t, Config{Ptrace: true}), g)
	if err := cancel(); err != nil {
		t.Error(err)
	}
}

// TestGoSignalsKilled sets a breakpoint in the signal handler of Go's runtime, which blocks all signals, and kills
// the monitor.
func TestGoSignalsKilled(t *testing.T) {
	hogs := buildGo(t, "hogs")
	const rounds = "400000"
	want := subject.Alone(t, hogs, rounds)
	for range 5 {
		g := start(t, hogs, rounds)
		g.Addr = functionOf(t, hogs, "runtime.sighandler")
		outlive(t, g, "plant nowarden ptrace", time.Duration(rand.IntN(30))*time.Millisecond)
		if got := g.Finish(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFamily(t *testing.T) {
	family := build(t, "family.c")
	// The hits of the process itself; hits of its children are not counted.
	want := map[string]int64{"fork": 100 + 30*100, "vfork": 100 + 30*100, "spawn": 100 + 30*100, "exec": 100}
	for mode, count := range want {
		t.Run(mode, func(t *testing.T) {
			n := openNode(t)
			g := start(t, family, mode, "30")
			hits, cancel := watchWork(t, n, g)
			var children atomic.Int64
			if _, err := n.Watch(node.Watch{Event: node.EventProcCreated, Proc: g.ID}, func(h *node.Hit) { children.Add(1) }); err != nil {
				t.Fatal(err)
			}
			g.Begin()
			if got := g.Line(); got != "bad 0" {
				t.Error(got)
			}
			if hits.Load() != count || mode != "exec" && children.Load() != 30 {
				t.Errorf("%d hits, want %d; %d children", hits.Load(), count, children.Load())
			}
			if err := cancel(); err != nil {
				t.Error(err)
			}
			checkText(t, g)
		})
		t.Run(mode+" killed", func(t *testing.T) {
			for range 5 {
				g := start(t, family, mode, "30")
				way := "plant" + []string{"", " nowarden"}[rand.IntN(2)]
				outlive(t, g, way, time.Duration(rand.IntN(20000))*time.Microsecond)
				if got := g.Finish(); got != "bad 0" {
					t.Errorf("%s: %s", way, got)
				}
			}
		})
	}
}

// checkText compares the code of a program with its file.
func checkText(t *testing.T, g *target) {
	t.Helper()
	memory, file := text(t, g)
	for at := 0; at < len(file); at++ {
		if memory[at] != file[at] {
			end := min(at+16, len(file))
			t.Errorf("the code differs from the file: at %#x it is %x, want %x", at, memory[at:end], file[at:end])
			at = end
		}
	}
}
