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

// startByOwner starts a child of the monitor on an OS thread, and then makes this thread the thread of a
// process's owner, as may happen by chance.
func startByOwner(t *testing.T, n *Node, g *target, child *exec.Cmd) {
	t.Helper()
	o := newOwner(n, g.ID)
	n.owners.enter(o)
	n.owners.running.Add(1)
	started := make(chan error)
	go onOwnThread(func() {
		started <- child.Start()
		for o.box.empty() { // an owner without commands ends
			time.Sleep(time.Millisecond)
		}
		o.run()
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// checkHits watches a target's function and checks the number of hits and the target's result.
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

// TestForeignChild checks that the owner does not reap a child that other code started. The kernel reports
// the end of the child to the owner's thread again and again until that code reaps the child.
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
		t.Errorf("the owner has reaped the child: %v", err)
	}
}

// TestForeignTarget checks that the owner does not take a stop of a child that another thread traces. The
// kernel reports such stops to the owner's thread too. If the owner took one, the tracer would wait for it,
// and the child would be stopped, for ever.
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
		t.Error("the owner has taken the child's stop")
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Errorf("the owner has reaped the child: %v", err)
	}
}
