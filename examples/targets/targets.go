// Package targets builds and starts target programs for tests: real processes to observe. A
// target is a directory beside this file with C or C++ sources, which the script build
// compiles. A target prints "ready PID" when it can be observed.
//
// Only tests may import it; of this module it imports only its subpackage report. Each Process
// belongs to the test that started it.
package targets

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Build returns the path of the target's program, after building it if it is not up to date.
// All tests share the result.
func Build(t testing.TB, name string) string {
	t.Helper()
	root := moduleRoot(t)
	out := filepath.Join(root, "build", "targets")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatalf("cannot build target %s: %v", name, err)
	}
	unlock := lock(t, filepath.Join(out, ".lock-"+name))
	defer unlock()
	script := filepath.Join(root, "examples", "targets", "build")
	if b, err := exec.Command(script, name, out).CombinedOutput(); err != nil {
		t.Fatalf("cannot build target %s: %v\n%s", name, err, b)
	}
	return filepath.Join(out, name)
}

// moduleRoot returns the directory with go.mod, above the one in which the test runs.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the folder the test runs in")
		}
		dir = parent
	}
}

// lock prevents tests of several packages from building a target at the same time.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}

// copyTo copies the program and its library to a directory from which another user may run it.
func copyTo(t testing.TB, program, dir string) string {
	t.Helper()
	name := filepath.Base(program)
	for _, file := range []string{name, "lib" + name + ".so"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(program), file))
		if os.IsNotExist(err) && file != name {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}
