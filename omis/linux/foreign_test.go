//go:build linux && amd64

package linux

import (
	"os/exec"
	"testing"

	"mirador/omis/linux/subject"
)

// TestForeignChild: an owner happens to have the OS thread that started a child
// of the monitor's. Its end is told to the owner, again and again, until it is
// reaped by whoever started it, who must find it.
func TestForeignChild(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	n := openNode(t)
	g := start(t, hammer, "4", "2000")
	child := exec.Command("true")
	o := newOwner(n, g.ID)
	n.mu.Lock()
	n.owners[g.ID] = o
	n.owning.Add(1)
	n.mu.Unlock()
	started := make(chan error)
	go onOwnThread(func() {
		started <- child.Start()
		o.run()
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	awaitState(t, child.Process.Pid, "Z")
	count, cancel := watchWork(t, n, g)
	g.Begin()
	if got := g.Line(); got != want || count.Load() != 8000 {
		t.Errorf("%s with %d hits, want %s with 8000", got, count.Load(), want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("somebody else has reaped it: %v", err)
	}
}
