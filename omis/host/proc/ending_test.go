//go:build linux

package proc

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEnding kills processes and reads them at once: Ending must report true at any
// moment after the kill.
func TestEnding(t *testing.T) {
	for range 25 {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		if Ending(pid) {
			t.Error("Ending reports true for a running process")
		}
		unix.Kill(pid, unix.SIGKILL)
		for range 200 {
			if !Ending(pid) {
				t.Error("Ending reports false for a killed process")
				break
			}
		}
		cmd.Wait()
		if Ending(pid) {
			t.Error("Ending reports true after the process is gone")
		}
	}
}
