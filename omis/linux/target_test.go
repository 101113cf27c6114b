//go:build linux && amd64

package linux

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirador/omis"
	"mirador/omis/linux/warden"
)

// wardenEnv makes the test binary a warden.
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
	goleak.VerifyTestMain(m)
}

func testWarden() []string { return []string{"/usr/bin/env", wardenEnv + "=1", os.Args[0]} }

func openNode(t testing.TB) *Node {
	t.Helper()
	return openNodeWith(t, Config{})
}

func openNodeWith(t testing.TB, c Config) *Node {
	t.Helper()
	c.Name, c.Warden = "here", testWarden()
	n, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	args := append([]string{"-O2", "-g", "-pthread", "-o", out, filepath.Join("testdata", source)}, flags...)
	compiler := "gcc"
	if filepath.Ext(source) == ".cc" {
		compiler = "g++"
	}
	if msg, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, msg)
	}
	openDirs(t, filepath.Dir(out))
	return out
}

// openDirs lets users without privileges at a directory of a test.
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
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	Addr uint64 // of the function it announced
	ID   omis.ProcID
}

func start(t testing.TB, path string, args ...string) *target {
	t.Helper()
	return startAs(t, nil, path, args...)
}

func startAs(t testing.TB, cred *syscall.Credential, path string, args ...string) *target {
	t.Helper()
	g := &target{t: t, cmd: exec.Command(path, args...)}
	g.cmd.Stderr = os.Stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	g.in, _ = g.cmd.StdinPipe()
	out, _ := g.cmd.StdoutPipe()
	g.out = bufio.NewReader(out)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.cmd.Process.Kill()
		g.cmd.Wait()
	})
	if _, err := fmt.Sscanf(g.line(), "ready %v", &g.Addr); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.ID, err = procIdentify(g.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *target) line() string {
	g.t.Helper()
	s, err := g.out.ReadString('\n')
	if err != nil {
		g.t.Fatalf("the target said nothing more: %v (%v)", err, g.cmd.Wait())
	}
	return strings.TrimSpace(s)
}

func (g *target) begin() { fmt.Fprintln(g.in) }

// finish waits for the end of the target and returns its last line.
func (g *target) finish() string {
	g.t.Helper()
	last := g.line()
	g.in.Close()
	if err := g.cmd.Wait(); err != nil {
		g.t.Fatalf("the target ended with %v after %q", err, last)
	}
	return last
}

// expected is what a program prints when nobody watches.
func expected(t testing.TB, path string, args ...string) string {
	t.Helper()
	g := start(t, path, args...)
	g.begin()
	return g.finish()
}
