//go:build linux

package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mirador/omis/host/proc"
)

// TestTypedName starts a program by its own name, by a symbolic link, with another first
// argument, and as the interpreter of a script.
func TestTypedName(t *testing.T) {
	dir := t.TempDir()
	link, script := filepath.Join(dir, "nap"), filepath.Join(dir, "script")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/bash\nread x\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		args []string
		want string
	}{
		{sleep, []string{"sleep", "60"}, "sleep"},
		{link, []string{link, "60"}, "nap"},
		{link, []string{"nap of 60 seconds", "60"}, "nap"},
		{link, []string{"sleep", "60"}, ""},
		{script, []string{script}, ""},
	} {
		cmd := &exec.Cmd{Path: c.path, Args: c.args}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := proc.TypedName(cmd.Process.Pid)
		// Start returns before the kernel has set up the new program's memory.
		for end := time.Now().Add(10 * time.Second); got != c.want && time.Now().Before(end); time.Sleep(time.Millisecond) {
			got = proc.TypedName(cmd.Process.Pid)
		}
		if got != c.want {
			t.Errorf("%s %q: %q, want %q", c.path, c.args, got, c.want)
		}
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	}
	if got := proc.TypedName(1 << 22); got != "" {
		t.Errorf("no process: %q", got)
	}
}
