//go:build linux

package criu

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithholdFiles checks that a child does not inherit a file that this process has
// inherited, but does get the files intended for it.
func TestWithholdFiles(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil { // without O_CLOEXEC, as if inherited
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if !childSees(t, pipe[0]) {
		t.Fatal("a child does not inherit the file before WithholdFiles")
	}
	WithholdFiles()
	if childSees(t, pipe[0]) {
		t.Error("a child inherits the file after WithholdFiles")
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_GETFD, 0); err != nil {
		t.Errorf("this process has lost the file: %v", err)
	}
	cmd := exec.Command("sh", "-c", "test -e /proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{os.Stdin}
	if err := cmd.Run(); err != nil {
		t.Errorf("a file intended for a child: %v", err)
	}
}

func childSees(t *testing.T, fd int) bool {
	t.Helper()
	return exec.Command("sh", "-c", fmt.Sprintf("test -e /proc/self/fd/%d", fd)).Run() == nil
}
