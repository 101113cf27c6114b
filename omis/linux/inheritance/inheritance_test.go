//go:build linux

package inheritance

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithhold gives a process a file that its own child must not see, though
// those it is meant for get theirs.
func TestWithhold(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil { // without O_CLOEXEC: a legacy
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if !childSees(t, pipe[0]) {
		t.Fatal("a child does not inherit what it is to inherit")
	}
	Withhold()
	if childSees(t, pipe[0]) {
		t.Error("a child inherits what was withheld")
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_GETFD, 0); err != nil {
		t.Errorf("this process has lost it: %v", err)
	}
	cmd := exec.Command("sh", "-c", "test -e /proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{os.Stdin}
	if err := cmd.Run(); err != nil {
		t.Errorf("a file that is meant for a child: %v", err)
	}
}

func childSees(t *testing.T, fd int) bool {
	t.Helper()
	return exec.Command("sh", "-c", fmt.Sprintf("test -e /proc/self/fd/%d", fd)).Run() == nil
}
