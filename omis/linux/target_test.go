//go:build linux && amd64

package linux

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirador/omis"
	"mirador/omis/linux/criu"
	"mirador/omis/linux/subject"
	"mirador/omis/linux/warden"
)

// patienceOfTests is the limit for conditions that must become true; it leaves time for a busy machine.
const patienceOfTests = 30 * time.Second

// endless is a number of calls for hammer.c that takes longer than any test.
const endless = "1000000000000"

// wardenEnv is an environment variable that makes the test binary a warden.
const wardenEnv = "MIRADOR_TEST_WARDEN"

func TestMain(m *testing.M) {
	if os.Getenv(wardenEnv) != "" {
		if err := warden.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(monitorEnv); spec != "" {
		runMonitor(spec)
	}
	criu.WithholdFiles()
	goleak.VerifyTestMain(m)
}

func testWarden() []string { return []string{"/usr/bin/env", wardenEnv + "=1", os.Args[0]} }

func openNode(t testing.TB) *Node {
	t.Helper()
	return openNodeWith(t, Config{})
}

func openNodeWith(t testing.TB, c Config) *Node {
	t.Helper()
	c.Name, c.Warden = cmp.Or(c.Name, "here"), testWarden()
	n, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

// build compiles a program of testdata.
func build(t testing.TB, source string, flags ...string) string {
	t.Helper()
	name := strings.TrimSuffix(source, filepath.Ext(source))
	out := subject.Compile(t, name, append([]string{filepath.Join("testdata", source)}, flags...)...)
	openDirs(t, filepath.Dir(out))
	return out
}

// openDirs lets all users read a directory of a test.
func openDirs(t testing.TB, dir string) {
	t.Helper()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// target is a running program of testdata.
type target struct {
	*subject.Subject
	Addr uint64 // of the function whose address it has written
	ID   omis.ProcID
}

func start(t testing.TB, path string, args ...string) *target {
	t.Helper()
	return startAs(t, nil, path, args...)
}

func startAs(t testing.TB, cred *syscall.Credential, path string, args ...string) *target {
	t.Helper()
	return startWith(t, &syscall.SysProcAttr{Credential: cred}, path, args...)
}

func startWith(t testing.TB, attr *syscall.SysProcAttr, path string, args ...string) *target {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = attr
	g := &target{Subject: subject.Start(t, cmd)}
	if _, err := fmt.Sscanf(g.Line(), "ready %v", &g.Addr); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.ID, err = procIdentify(g.PID); err != nil {
		t.Fatal(err)
	}
	return g
}
