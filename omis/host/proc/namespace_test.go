//go:build linux

package proc

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestSameNumbers(t *testing.T) {
	for flags, want := range map[uintptr]bool{0: true, syscall.CLONE_NEWPID: false} {
		cmd := exec.Command("cat")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if same, err := SameNumbers(cmd.Process.Pid); err != nil || same != want {
			t.Errorf("with flags %#x: %v, %v", flags, same, err)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := SameNumbers(cmd.Process.Pid); err == nil {
			t.Error("SameNumbers succeeds for a process that has ended")
		}
	}
}
