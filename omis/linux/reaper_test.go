//go:build linux && amd64

package linux

import (
	"slices"
	"testing"
	"time"

	"mirador/omis/host/proc"
)

// TestExecveWhileAttaching makes a process execute another program while the owner has seized only some of its
// threads. The execve waits until the owner reaps the traced threads, and the owner must not wait for the execve.
func TestExecveWhileAttaching(t *testing.T) {
	g := start(t, build(t, "becomer.c"))
	n := openNode(t)
	tids, err := proc.Threads(g.ID.PID)
	if err != nil {
		t.Fatal(err)
	}
	leader := slices.Index(tids, g.ID.PID)
	others := slices.Delete(slices.Clone(tids), leader, leader+1)
	half, dying, whole := make(chan error), make(chan struct{}), make(chan error)
	go onOwnThread(func() {
		o := newOwner(n, g.ID)
		_, err := o.tracer.seize(others)
		half <- err
		<-dying
		_, err = o.tracer.seize([]int{g.ID.PID})
		whole <- err
	})
	if err := <-half; err != nil {
		t.Fatal(err)
	}
	g.Begin()
	eventually(t, "the execve begins", func() bool { return threadEnded(g.ID.PID, others[0]) })
	close(dying)
	select {
	case err := <-whole:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patienceOfTests):
		g.Cmd.Process.Kill()
		t.Fatal("the attachment and the execve wait for each other")
	}
	if last := g.Finish(); last != "again" {
		t.Errorf("the program became %q", last)
	}
}
