//go:build linux && amd64

package linux

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestTwoWatches checks that two watches of one address are called in the order in which they were set, while
// other watches are set and cancelled.
func TestTwoWatches(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "5000"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	var order []int
	for i := range 2 {
		_, _, _ = watchHeld(t, n, g, func(h *node.Hit) { order = append(order, i) })
	}
	g.Begin()
	for range 20 {
		_, _, cancel := watchHeld(t, n, g, nil)
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(order) != 40000 {
		t.Fatalf("%d calls", len(order))
	}
	for i := range order {
		if order[i] != i%2 {
			t.Fatalf("call %d is of watch %d", i, order[i])
		}
	}
}

// TestEveryInstruction watches all instructions of a function, by jumps and breakpoints that must not disturb
// each other.
func TestEveryInstruction(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "300"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	code := make([]byte, 40)
	if _, err := n.ReadMemory(g.ID, g.Addr, code); err != nil {
		t.Fatal(err)
	}
	var hits []*atomic.Int64
	var cancels []func() error
	for at := 0; at < 20; {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			t.Fatal(err)
		}
		count := new(atomic.Int64)
		cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr + uint64(at)}, func(*node.Hit) { count.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		hits, cancels = append(hits, count), append(cancels, cancel)
		at += inst.Len
	}
	again := make([]byte, len(code))
	if _, err := n.ReadMemory(g.ID, g.Addr, again); err != nil || !bytes.Equal(code, again) {
		t.Errorf("% x is read as % x, %v", code, again, err)
	}
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, count := range hits {
		if count.Load() < 1200 {
			t.Errorf("instruction %d: %d hits", i, count.Load())
		}
	}
	if hits[0].Load() != 1200 {
		t.Errorf("%d hits at the entry", hits[0].Load())
	}
	for _, cancel := range cancels {
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	checkUntouched(t, g)
}

// TestGiveWay checks that all hits are counted when a breakpoint replaces a jump under load.
func TestGiveWay(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "4000"}
	want := subject.Alone(t, hammer, args...)
	n := openNode(t)
	g := start(t, hammer, args...)
	// Hold a thread at the hundredth hit until a watch of system calls makes the jump impossible.
	held, count := make(chan func(), 1), 0
	met, stopped, cancel := watchHeld(t, n, g, func(h *node.Hit) {
		if count++; count == 100 {
			held <- h.Hold()
		}
	})
	g.Begin()
	release := <-held
	var ours atomic.Int64
	calls, err := n.Watch(node.Watch{Event: node.EventSysCallStarted, Proc: g.ID}, func(h *node.Hit) {
		ours.Add(int64(strings.Count(fmt.Sprint(h.Params), "gettid")))
	})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if got := g.Line(); got != want || met.Load()+stopped.Load() != 16000 || stopped.Load() == 0 {
		t.Errorf("got %s with %d hits, and %d by ptrace, want %s", got, met.Load(), stopped.Load(), want)
	}
	if ours.Load() > 0 {
		t.Errorf("%d system calls of the monitor are reported", ours.Load())
	}
	for _, c := range []func() error{calls, cancel} {
		if err := c(); err != nil {
			t.Error(err)
		}
	}
	checkUntouched(t, g)
}

// TestByPtrace checks that a node with Config.Ptrace holds threads only by ptrace.
func TestByPtrace(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "2", "500")
	n := openNodeWith(t, Config{Ptrace: true})
	g := start(t, hammer, "2", "500")
	met, stopped, _ := watchHeld(t, n, g, nil)
	g.Begin()
	if got := g.Line(); got != want || stopped.Load() != 1000 || met.Load() > 0 {
		t.Errorf("got %s with %d hits, and %d by ptrace, want %s", got, met.Load(), stopped.Load(), want)
	}
}

// TestNextMonitor checks that the next monitor finds, uses and removes the jumps of a killed one.
func TestNextMonitor(t *testing.T) {
	g := start(t, build(t, "hammer.c"), "4", endless)
	g.Begin()
	for range 3 {
		leaveMonitor(t, g, "plant nowarden")
		if memory, file := text(t, g); bytes.Equal(memory, file) {
			t.Fatal("the killed monitor left nothing")
		}
		n := openNode(t)
		met, stopped, cancel := watchHeld(t, n, g, nil)
		eventually(t, "threads are held by rendezvous", func() bool { return met.Load() >= 100 })
		if stopped.Load() > 0 {
			t.Logf("%d hits by ptrace", stopped.Load())
		}
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		checkUntouched(t, g)
	}
	if arenas, boards := mappingsOfRendezvous(t, g); arenas != 1 || boards > 3 {
		t.Errorf("%d arenas and %d boards of killed monitors are left", arenas, boards)
	}
}

// mappingsOfRendezvous counts the mappings for rendezvous in a target.
func mappingsOfRendezvous(t *testing.T, g *target) (arenas, boards int) {
	t.Helper()
	maps, err := procMaps(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		switch {
		case m.Path == "" && m.Exec && !m.Write && m.End-m.Start == 0xf000:
			arenas++
		case bytes.Contains([]byte(m.Path), []byte("mirador hold")):
			boards++
		}
	}
	return arenas, boards
}

// TestMeetAndPart sets and cancels a watch many times under load, and checks that mappings do not accumulate.
func TestMeetAndPart(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "hammer.c"), "4", endless)
	g.Begin()
	var last, met *atomic.Int64
	for range 100 {
		var cancel func() error
		met, _, cancel = watchHeld(t, n, g, nil)
		eventually(t, "threads are held by rendezvous", func() bool { return met.Load() > 0 })
		if err := cancel(); err != nil {
			t.Fatal(err)
		}
		last = met
	}
	if last.Load() == 0 {
		t.Error("no hits")
	}
	checkUntouched(t, g)
	if arenas, boards := mappingsOfRendezvous(t, g); arenas != 1 || boards > 5 {
		t.Errorf("%d arenas, %d boards", arenas, boards)
	}
}

// TestEndsWhileHeld kills a process while its threads are held.
func TestEndsWhileHeld(t *testing.T) {
	n := openNode(t)
	hammer := build(t, "hammer.c")
	g := start(t, hammer, "4", "1000000")
	var mu sync.Mutex
	var releases []func()
	watchHeld(t, n, g, func(h *node.Hit) {
		mu.Lock()
		defer mu.Unlock()
		releases = append(releases, h.Hold())
	})
	ended := make(chan int64, 1)
	if _, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: g.ID}, func(h *node.Hit) { ended <- h.Time }); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	eventually(t, "all four are held", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(releases) == 4
	})
	unix.Kill(g.ID.PID, unix.SIGKILL)
	select {
	case <-ended:
	case <-time.After(patienceOfTests):
		t.Fatal("the end of the process is not reported")
	}
	for _, release := range releases {
		release() // must have no effect
	}
}

// TestStoppedMonitor checks that a stopped monitor does not hold threads for ever.
func TestStoppedMonitor(t *testing.T) {
	hammer := build(t, "hammer.c")
	args := []string{"4", "20000"}
	want := subject.Alone(t, hammer, args...)
	g := start(t, hammer, args...)
	monitor := startMonitor(t, g, "hold")
	monitor.Line()
	g.Begin()
	time.Sleep(100 * time.Millisecond)
	monitor.Cmd.Process.Signal(unix.SIGSTOP)
	begin := time.Now()
	got := g.Line()
	// If each call waited for the monitor, the target would take hours.
	if took := time.Since(begin); got != want || took > 30*monitorPatience {
		t.Errorf("got %s after %v, want %s", got, took, want)
	}
	monitor.Kill()
}

// TestFiltered checks that a process with a filter of system calls gets breakpoints instead of jumps, and that
// the filter does not kill it for the monitor's system calls.
func TestFiltered(t *testing.T) {
	n := openNode(t)
	filtered := build(t, "filtered.c")
	want := subject.Alone(t, filtered)
	g := start(t, filtered)
	met, stopped, cancel := watchHeld(t, n, g, nil)
	g.Begin()
	if got := g.Line(); got != want || met.Load() > 0 || stopped.Load() != 100 {
		t.Errorf("got %s with %d hits, and %d by ptrace, want %s", got, met.Load(), stopped.Load(), want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}

// TestStrict checks that a process in strict mode of seccomp, which cannot execute the system calls that the
// monitor needs, gets no breakpoint and no patch.
func TestStrict(t *testing.T) {
	n := openNode(t)
	filtered := build(t, "filtered.c")
	want := subject.Alone(t, filtered, "strict")
	g := start(t, filtered, "strict")
	_, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
	if err == nil || !strings.Contains(err.Error(), "strict mode") {
		t.Errorf("a breakpoint in a strict process: %v", err)
	}
	if _, err := n.Ground(g.ID); err == nil || !strings.Contains(err.Error(), "a filter of the process") {
		t.Errorf("code in a strict process: %v", err)
	}
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	checkUntouched(t, g)
}

// TestWriteBelowJump checks that bytes written at the address of a jump can be read back.
func TestWriteBelowJump(t *testing.T) {
	n := openNode(t)
	g := start(t, build(t, "life.c"), "stops", "1")
	met, _, _ := watchHeld(t, n, g, nil)
	code := make([]byte, 16)
	if _, err := n.ReadMemory(g.ID, g.Addr, code); err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(code, 0xe9); i == 0 || met.Load() > 0 {
		t.Fatalf("% x", code)
	}
	changed := bytes.Clone(code)
	changed[4] = 2 // lea 2(%rdi,%rdi,2), %rax
	if err := n.WriteMemory(g.ID, g.Addr, changed); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ReadMemory(g.ID, g.Addr, code); err != nil || !bytes.Equal(code, changed) {
		t.Errorf("% x, %v", code, err)
	}
	g.Begin()
	g.Line()
}
