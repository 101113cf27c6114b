package subject

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A test's own program, once more: an environment variable, given as NAME=VALUE, has its
// TestMain do something else than test.

// StartAgain returns when the program says "ready".
func StartAgain(t testing.TB, setting string) *Subject {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), setting)
	s := Start(t, cmd)
	if line := s.Line(); line != "ready" {
		t.Fatalf("another %s, with %s, says %q", os.Args[0], setting, line)
	}
	return s
}

// RunAgain returns what the program has said, as another user or in other surroundings.
func RunAgain(t testing.TB, setting string, attr *syscall.SysProcAttr) string {
	t.Helper()
	cmd := exec.Command(ForAll(t))
	cmd.Env = append(os.Environ(), setting)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// ForAll is the program where every user may execute it.
func ForAll(t testing.TB) string {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(Shared(t), "again")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Shared is a folder that every user may read and enter.
func Shared(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Nobody are the attributes of a process without privileges, but for some capabilities.
func Nobody(have ...uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: have}
}
