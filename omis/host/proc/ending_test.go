//go:build linux

package proc

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEnding kills processes and looks at them at once: there is no moment at
// which one that was killed looks alive.
func TestEnding(t *testing.T) {
	for range 25 {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		if Ending(pid) {
			t.Error("who runs is ending")
		}
		unix.Kill(pid, unix.SIGKILL)
		for range 200 {
			if !Ending(pid) {
				t.Error("who was killed runs on")
				break
			}
		}
		cmd.Wait()
		if Ending(pid) {
			t.Error("who is gone is ending")
		}
	}
}
