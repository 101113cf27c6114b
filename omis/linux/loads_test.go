//go:build linux && amd64

package linux

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// buildTwists compiles two libraries with a function of the same name.
func buildTwists(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	openDirs(t, dir)
	libraries := []string{filepath.Join(dir, "libtwo.so"), filepath.Join(dir, "libthree.so")}
	for i, flags := range [][]string{{"-DFACTOR=2"}, {"-DFACTOR=3", "-DPAD"}} {
		args := append([]string{"-O2", "-g", "-fPIC", "-shared", "-fno-semantic-interposition", "-o", libraries[i], "testdata/twist.c"}, flags...)
		if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, msg)
		}
	}
	return libraries
}

// TestLoadedLater checks that calls of functions are reported although their library is loaded later, unloaded
// and loaded again, also after the process has executed another program.
func TestLoadedLater(t *testing.T) {
	loader, libraries := build(t, "loader.c"), buildTwists(t)
	want := subject.Alone(t, loader, libraries...)
	n := openNode(t)
	g := start(t, loader, libraries...)
	_, err := n.Watch(node.Watch{Event: node.EventLibCallStarted, Proc: g.ID, Name: "twist"}, func(*node.Hit) {})
	wantError(t, err, omis.ParameterError, "libNAME.so:twist")
	var started, ended int
	var sum uint64
	var cancels []func() error
	watch := func(kind node.EventKind, name string, handle func(*node.Hit)) {
		cancel, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Name: name}, handle)
		if err != nil {
			t.Fatal(err)
		}
		cancels = append(cancels, cancel)
	}
	watch(node.EventLibCallStarted, "libtwo.so:twist", func(h *node.Hit) {
		started++
		go h.Hold()()
		if len(h.Params) != 1 {
			t.Errorf("parameters %v", h.Params)
		}
	})
	watch(node.EventLibCallEnded, "libthree.so:twist", func(h *node.Hit) { ended++; sum += h.Params[0].N })
	var sleeps int
	watch(node.EventLibCallStarted, "getenv", func(*node.Hit) { sleeps++ })
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, cancel := range cancels {
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	const calls = 2 * 5 * 10
	if started != calls || ended != calls || sum != 2*5*(3*45+10) || sleeps != 1 {
		t.Errorf("%d started and %d ended, with %d; getenv %d", started, ended, sum, sleeps)
	}
	checkUntouched(t, g)
}

// TestLaunchedBeforeItsLibraries watches library calls in a launched process, which has no libraries before its
// first instruction.
func TestLaunchedBeforeItsLibraries(t *testing.T) {
	n := openNode(t)
	p, err := n.Launch(node.Launch{Path: build(t, "library.c"), IO: []string{"/dev/null", "/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan struct{})
	if _, err := n.Watch(node.Watch{Event: node.EventProcTerminated, Proc: p}, func(*node.Hit) { close(ends) }); err != nil {
		t.Fatal(err)
	}
	var calls int
	if _, err := n.Watch(node.Watch{Event: node.EventLibCallEnded, Proc: p, Name: "strtol"}, func(*node.Hit) { calls++ }); err != nil {
		t.Fatal(err)
	}
	if err := n.Continue(p, nil); err != nil {
		t.Fatal(err)
	}
	<-ends
	if calls != 600 {
		t.Errorf("%d calls", calls)
	}
}

// TestUnloadedAddress checks that a watch in an unloaded library can be cancelled, and that the bytes of its
// breakpoint are not written into the code that was loaded there later.
func TestUnloadedAddress(t *testing.T) {
	loader := build(t, "loader.c")
	args := append([]string{"stay"}, buildTwists(t)...)
	want := subject.Alone(t, loader, args...)
	n := openNode(t)
	g := start(t, loader, args...)
	addrs := make(chan uint64, 100)
	release := make(chan func(), 100)
	find, err := n.Watch(node.Watch{Event: node.EventLibCallStarted, Proc: g.ID, Name: "libtwo.so:twist"}, func(h *node.Hit) {
		addrs <- h.Addr
		release <- h.Hold()
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Begin()
	addr := <-addrs
	hits := 0
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: addr}, func(*node.Hit) { hits++ })
	if err != nil {
		t.Fatal(err)
	}
	// Without this watch the node does not notice that a library is unloaded.
	if err := find(); err != nil {
		t.Fatal(err)
	}
	(<-release)()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	if hits != 9 {
		t.Errorf("%d hits, want the 9 before the library was unloaded", hits)
	}
	checkUntouched(t, g)
}

func TestLoadersOutliveTheMonitor(t *testing.T) {
	loader, libraries := build(t, "loader.c"), buildTwists(t)
	want := subject.Alone(t, loader, libraries...)
	for i := range 10 {
		g := start(t, loader, libraries...)
		outlive(t, g, fmt.Sprintf("event-%d=libtwo.so:twist", node.EventLibCallEnded), time.Duration(i)*700*time.Microsecond)
		if got := g.Line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
