package subject

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Compile compiles a program from sources and with flags, and returns its path. Tests that name
// the same sources of their package get copies of one compilation.
func Compile(t testing.TB, name string, args ...string) string {
	t.Helper()
	if slices.ContainsFunc(args, filepath.IsAbs) {
		return compile(t, name, args) // from the folder of a test
	}
	return Once(t, name+" "+strings.Join(args, " "), func() string { return compile(t, name, args) })
}

func compile(t testing.TB, name string, args []string) string {
	t.Helper()
	compiler := "gcc"
	for _, arg := range args {
		if filepath.Ext(arg) == ".cc" {
			compiler = "g++"
		}
	}
	out := filepath.Join(t.TempDir(), name)
	args = append([]string{"-O2", "-g", "-pthread", "-o", out}, args...)
	if msg, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, msg)
	}
	return out
}

// compiled has the programs that Once has copied, by their keys. The files are open, because
// the test that compiled a program removes its folder.
var compiled struct {
	sync.Mutex
	byKey map[string]*os.File
}

// Once returns the path of a program that make compiles for the first test of this process that
// gives the key. The program is a file of its own for each call, since uprobes belong to files.
func Once(t testing.TB, key string, make func() string) string {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	from := compiled.byKey[key]
	if from == nil {
		var err error
		if from, err = os.Open(make()); err != nil {
			t.Fatal(err)
		}
		if compiled.byKey == nil {
			compiled.byKey = map[string]*os.File{}
		}
		compiled.byKey[key] = from
	}
	// cp writes the file. If this process did, a process that it forks meanwhile might have the file open for
	// writing when it is executed (ETXTBSY).
	path := filepath.Join(t.TempDir(), filepath.Base(from.Name()))
	if msg, err := exec.Command("cp", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), from.Fd()), path).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, msg)
	}
	return path
}
