//go:build linux && amd64

package ptrace

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReapDeadLeavesStops calls ReapDead between a stop and the Wait for it.
func TestReapDeadLeavesStops(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child := exec.Command("/bin/cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "here")
	if _, err := fmt.Fscanln(out, new(string)); err != nil { // its execve is over
		t.Fatal(err)
	}
	pid := child.Process.Pid
	defer child.Wait()
	defer child.Process.Kill()
	if err := Seize(pid); err != nil {
		t.Fatal(err)
	}
	if err := Interrupt(pid); err != nil {
		t.Fatal(err)
	}
	awaitPoll(t, pid)
	if ReapDead(pid) {
		t.Error("ReapDead takes a stopped process for a dead one")
	}
	s, ok := PollThread(pid)
	if !ok || s.Event() != EventStop {
		t.Fatalf("the stop was consumed: %+v, %v", s, ok)
	}
	if err := Detach(pid, 0); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	awaitPoll(t, pid)
	if !ReapDead(pid) {
		t.Error("ReapDead did not reap a dead process")
	}
}

// awaitPoll waits until a thread has a status.
func awaitPoll(t *testing.T, tid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, ok := PollThread(tid); ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no status")
		}
	}
}
