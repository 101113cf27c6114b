package subject

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// These functions start the test program itself again. An environment variable, given as
// NAME=VALUE, makes its TestMain run something else than the tests.

// StartAgain starts the test program and returns when it prints "ready".
func StartAgain(t testing.TB, setting string) *Subject {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), setting)
	s := Start(t, cmd)
	if line := s.Line(); line != "ready" {
		t.Fatalf("%s, started again with %s, printed %q", os.Args[0], setting, line)
	}
	return s
}

// RunAgain runs the test program with other attributes, for example as another user, and returns
// its output.
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

// ForAll returns a copy of the test program that every user may execute.
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

// Shared returns a folder that every user may read and enter.
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

// Nobody returns the attributes of a process without privileges except some capabilities.
func Nobody(have ...uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: have}
}
