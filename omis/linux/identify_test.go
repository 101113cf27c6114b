//go:build linux && amd64

package linux

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

const nobody = 65534

func nobodyCredential() *syscall.Credential {
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

func wantError(t *testing.T, err error, status omis.Status, words ...string) {
	t.Helper()
	e, ok := err.(*omis.Error)
	if !ok || e.Status != status {
		t.Errorf("%v (%T), want status %v", err, err, status)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Msg, w) {
			t.Errorf("%q does not contain %q", e.Msg, w)
		}
	}
	t.Log(e.Msg)
}

func TestIdentify(t *testing.T) {
	hammer := build(t, "hammer.c")
	n := openNode(t)
	g := start(t, hammer, "2", "10")
	t.Run("fine", func(t *testing.T) {
		p, err := n.Identify(g.ID.PID)
		if err != nil || p != g.ID {
			t.Error(p, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		for _, pid := range []int{0, -1, 1 << 22} {
			_, err := n.Identify(pid)
			wantError(t, err, omis.UnknownObject, fmt.Sprint(pid))
		}
	})
	t.Run("thread", func(t *testing.T) {
		tids, _ := n.Threads(g.ID)
		_, err := n.Identify(tids[1])
		wantError(t, err, omis.UnknownObject, "thread of process", fmt.Sprint(g.ID.PID))
	})
	t.Run("self", func(t *testing.T) {
		_, err := n.Identify(os.Getpid())
		wantError(t, err, omis.ParameterError, "the monitor itself")
	})
	t.Run("kernel thread", func(t *testing.T) {
		_, err := n.Identify(2)
		wantError(t, err, omis.UnsupportedService, "kernel thread")
	})
	t.Run("zombie", func(t *testing.T) {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		awaitState(t, cmd.Process.Pid, "Z")
		_, err := n.Identify(cmd.Process.Pid)
		wantError(t, err, omis.UnknownObject, "zombie", "terminated")
	})
	t.Run("first thread gone", func(t *testing.T) {
		g := start(t, build(t, "life.c"), "leader", "1")
		g.Begin()
		awaitState(t, g.ID.PID, "Z")
		_, err := n.Identify(g.ID.PID)
		wantError(t, err, omis.UnsupportedService, "its first thread has ended")
	})
	t.Run("reused", func(t *testing.T) {
		former := omis.ProcID{PID: g.ID.PID, Start: g.ID.Start - 1}
		_, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: former, Addr: g.Addr}, func(*node.Hit) {})
		wantError(t, err, omis.UnknownObject, "has ended")
	})
	t.Run("gdb", func(t *testing.T) {
		gdb := exec.Command("gdb", "-q", "-nx", "-p", fmt.Sprint(g.ID.PID), "-ex", "echo attached\\n")
		in, _ := gdb.StdinPipe()
		out, _ := gdb.StdoutPipe()
		if err := gdb.Start(); err != nil {
			t.Fatal(err)
		}
		defer gdb.Wait()
		defer in.Close()
		awaitLine(t, out, "attached")
		want := fmt.Sprintf("traced by gdb (pid %d)", gdb.Process.Pid)
		_, err := n.Identify(g.ID.PID)
		wantError(t, err, omis.NoPermission, want)
		_, err = n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {})
		wantError(t, err, omis.NoPermission, want)
	})
}

func awaitLine(t *testing.T, r io.Reader, word string) {
	t.Helper()
	s := bufio.NewScanner(r)
	for s.Scan() {
		if strings.Contains(s.Text(), word) {
			return
		}
	}
	t.Fatalf("no %q", word)
}

func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); time.Now().Before(deadline); {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if strings.Contains(string(b), ") "+state+" ") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	t.Fatalf("process %d does not get into state %s: %s", pid, state, b)
}

// asNobody runs a test again in a process of the user nobody, without privileges.
func asNobody(t *testing.T, name string, env ...string) {
	t.Helper()
	cmd := exec.Command(subject.ForAll(t), "-test.run", "^"+name+"$", "-test.v")
	tmp := t.TempDir()
	openDirs(t, tmp)
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(append(os.Environ(), "TMPDIR="+tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobodyCredential()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// unprivilegedEnv passes the targets to a test that asNobody runs.
const unprivilegedEnv = "MIRADOR_TEST_UNPRIVILEGED"

// TestUnprivileged checks a node of the user nobody: the test runs itself again as that user.
func TestUnprivileged(t *testing.T) {
	spec := os.Getenv(unprivilegedEnv)
	if spec == "" {
		asUnprivileged(t)
		return
	}
	var foreign int
	var hammer string
	if _, err := fmt.Sscan(spec, &foreign, &hammer); err != nil {
		t.Fatal(err)
	}
	n := openNode(t)
	_, err := n.Identify(foreign)
	wantError(t, err, omis.NoPermission, "belongs to uid 0", "CAP_SYS_PTRACE", "65534")
	_, err = n.Identify(1)
	wantError(t, err, omis.NoPermission, "belongs to uid 0", "CAP_SYS_PTRACE")

	want := subject.Alone(t, hammer, "4", "2000")
	g := start(t, hammer, "4", "2000")
	hits, cancel := watchWork(t, n, g)
	g.Begin()
	if got := g.Line(); got != want || hits.Load() != 8000 {
		t.Errorf("got %s with %d hits, want %s", got, hits.Load(), want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
	p, err := n.Launch(node.Launch{Path: hammer, Args: []string{"1", "10"}, IO: []string{"", "/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Continue(p, nil); err != nil {
		t.Error(err)
	}
	for range 3 {
		g := start(t, hammer, "4", "30000")
		outlive(t, g, "plant", 5*time.Millisecond)
		awaitRestored(t, g)
		g.Finish()
	}
}

// asUnprivileged starts a process of root and runs TestUnprivileged as the user nobody.
func asUnprivileged(t *testing.T) {
	hammer := build(t, "hammer.c")
	g := start(t, hammer, "1", "10")
	asNobody(t, "TestUnprivileged", fmt.Sprintf("%s=%d %s", unprivilegedEnv, g.ID.PID, hammer))
}

func TestCloseLetsGo(t *testing.T) {
	hammer := build(t, "hammer.c")
	n, err := Open(Config{Name: "here", Warden: testWarden()})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, hammer, "4", endless)
	g.Begin()
	watchWork(t, n, g)
	if err := n.Stop(g.ID, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Fatal(err)
	}
	checkUntouched(t, g)
	awaitState(t, g.ID.PID, "S")
}
