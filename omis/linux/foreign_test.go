//go:build linux && amd64

package linux

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/subject"
)

// startByOwner has the OS thread that starts a child of the monitor's become that of
// the owner of a process, as it may happen, as soon as it has something to do.
func startByOwner(t *testing.T, n *Node, g *target, child *exec.Cmd) {
	t.Helper()
	o := newOwner(n, g.ID)
	n.mu.Lock()
	n.owners[g.ID] = o
	n.owning.Add(1)
	n.mu.Unlock()
	started := make(chan error)
	go onOwnThread(func() {
		started <- child.Start()
		for o.box.empty() { // it would retire
			time.Sleep(time.Millisecond)
		}
		o.run()
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// checkHits has a target run with a watch on its work.
func checkHits(t *testing.T, n *Node, g *target, want string, hits int64) {
	t.Helper()
	count, cancel := watchWork(t, n, g)
	g.Begin()
	if got := g.Line(); got != want || count.Load() != hits {
		t.Errorf("%s with %d hits, want %s with %d", got, count.Load(), want, hits)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
}

// TestForeignChild: the end of a child is told to the owner, again and again, until it
// is reaped by whoever started it, who must find it.
func TestForeignChild(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	n := openNode(t)
	g := start(t, hammer, "4", "2000")
	child := exec.Command("true")
	startByOwner(t, n, g, child)
	awaitState(t, child.Process.Pid, "Z")
	checkHits(t, n, g, want, 8000)
	if err := child.Wait(); err != nil {
		t.Errorf("somebody else has reaped it: %v", err)
	}
}

// TestForeignTarget: the stops of a child that another owner traces are told to the
// owner, too. One that it took would be waited for, and the child stopped, for ever.
func TestForeignTarget(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "500")
	n := openNodeWith(t, Config{Ptrace: true})
	g := start(t, hammer, "4", "500")
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	startByOwner(t, n, g, child)
	pid := child.Process.Pid
	traced, look, told := make(chan error), make(chan struct{}), make(chan bool)
	go onOwnThread(func() {
		traced <- errors.Join(ptrace.Seize(pid), ptrace.Interrupt(pid))
		<-look
		_, ok := ptrace.PollThread(pid)
		_ = ptrace.Detach(pid, 0)
		told <- ok
	})
	if err := <-traced; err != nil {
		t.Error(err)
	}
	awaitState(t, pid, "t")
	checkHits(t, n, g, want, 2000)
	close(look)
	if !<-told {
		t.Error("somebody else has taken its stop")
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Errorf("somebody else has reaped it: %v", err)
	}
}
