//go:build linux && amd64

package ptrace

import (
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestQuiet lets a child stop and end: only the end may send the signal.
func TestQuiet(t *testing.T) {
	told := make(chan os.Signal, 10)
	signal.Notify(told, unix.SIGCHLD)
	defer signal.Stop(told)
	if err := Quiet(); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("/bin/cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Error(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED, nil); err != nil {
		t.Error(err)
	}
	select {
	case <-told:
		t.Error("a signal came when the child stopped")
	case <-time.After(50 * time.Millisecond):
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Error(err)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		t.Error("no signal came when the child ended")
	}
}
