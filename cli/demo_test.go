package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mirador/examples/targets"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(miradorPath, "demo", "--target", targets.Build(t, "mmul"))
	cmd.Env = append(cmd.Environ(), targets.NoneLeft(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"mmul itself counted 1920 calls of dot: the measured count agrees", "curl --unix-socket"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is missing in %s", part, out)
		}
	}
}

// TestDemoIsInterrupted ends the demo by SIGINT, and checks that no process and no file is left.
func TestDemoIsInterrupted(t *testing.T) {
	t.Parallel()
	mark := targets.NoneLeft(t)
	socket := filepath.Join(t.TempDir(), "m.sock")
	cmd := exec.Command(miradorPath, "demo", "--serve", "--socket", socket, "--target", targets.Build(t, "mmul"))
	cmd.Env = append(cmd.Environ(), mark)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the demo serves", func() bool { return strings.Contains(out.String(), "Try next") })
	if status, body := curl(t, "--unix-socket", socket, "-d", "<snapshotreq/>", "http://mirador/mir"); status != 200 {
		t.Errorf("status %d: %s", status, body)
	}
	cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
