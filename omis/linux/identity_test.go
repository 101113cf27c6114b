//go:build linux && amd64

package linux

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestIdentityGivenUp checks that a process of root with breakpoints can change its user. The C library
// changes all threads by a signal.
func TestIdentityGivenUp(t *testing.T) {
	const rounds, hits = "1000", 4000
	changer := build(t, "changer.c")
	want := subject.Alone(t, changer, "drop", rounds)
	n := openNode(t)
	g := start(t, changer, "drop", rounds)
	got, cancel := watchWork(t, n, g)
	g.Begin()
	if line := g.Line(); line != want || got.Load() != hits {
		t.Errorf("%s with %d hits, want %s with %d", line, got.Load(), want, hits)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkText(t, g)
	for range 5 {
		g := start(t, changer, "drop", rounds)
		outlive(t, g, "plant", time.Duration(rand.IntN(20000))*time.Microsecond)
		if line := g.Finish(); line != want {
			t.Errorf("with a killed monitor: %s, want %s", line, want)
		}
	}
}

// setUserID returns a set-user-ID copy of a program, which runs as root for any user.
func setUserID(t *testing.T, program string) string {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	openDirs(t, dir)
	file := dir + "/changer-as-root"
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSetUserID checks a process of the user nobody that executes a set-user-ID program of root.
func TestSetUserID(t *testing.T) {
	changer := build(t, "changer.c")
	asRoot := setUserID(t, changer)
	n := openNode(t)
	watch := func(g *target) error {
		cancel, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(*node.Hit) {})
		if err == nil {
			err = cancel()
		}
		return err
	}
	become := func(g *target) {
		t.Helper()
		g.Begin()
		if line := g.Line(); line != "ids 65534 0" {
			t.Errorf("%s: the program runs without its privileges", line)
		}
		wantError(t, watch(g), omis.NoPermission, "another identity", "uid 65534", "uid 0")
		wantError(t, n.Stop(g.ID, nil), omis.NoPermission, "another identity")
		_, err := n.Backtraces(g.ID, []int{g.ID.PID}, 1)
		wantError(t, err, omis.NoPermission, "another identity")
		if t.Failed() {
			return // the program may be stopped
		}
		if _, err := n.Identify(g.ID.PID); err != nil {
			t.Error(err)
		}
		if err := watch(g); err != nil {
			t.Errorf("after Identify: %v", err)
		}
		if s, err := proc.ReadStatus(g.ID.PID); err != nil || s.Tracer != 0 {
			t.Errorf("traced by %d, %v", s.Tracer, err)
		}
		g.HangUp()
		if err := g.Cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Run("between attaching and a request", func(t *testing.T) {
		g := startAs(t, nobodyCredential(), changer, "become", asRoot)
		if _, err := n.Identify(g.ID.PID); err != nil {
			t.Fatal(err)
		}
		become(g)
	})
	t.Run("while watched", func(t *testing.T) {
		g := startAs(t, nobodyCredential(), changer, "become", asRoot)
		if _, err := n.Identify(g.ID.PID); err != nil {
			t.Fatal(err)
		}
		watchWork(t, n, g)
		for _, kind := range []node.EventKind{node.EventThreadCreated, node.EventSysCallEnded} {
			if _, err := n.Watch(node.Watch{Event: kind, Proc: g.ID}, func(*node.Hit) {}); err != nil {
				t.Fatal(err)
			}
		}
		become(g)
	})
}

// TestSetUserIDUnprivileged checks a set-user-ID program with a monitor without privileges: the kernel starts
// the program without root's privileges if the monitor traces it, and otherwise refuses the monitor.
func TestSetUserIDUnprivileged(t *testing.T) {
	spec := os.Getenv(unprivilegedEnv)
	if spec == "" {
		changer := build(t, "changer.c")
		asNobody(t, t.Name(), fmt.Sprintf("%s=%s %s", unprivilegedEnv, changer, setUserID(t, changer)))
		return
	}
	var changer, asRoot string
	if _, err := fmt.Sscan(spec, &changer, &asRoot); err != nil {
		t.Fatal(err)
	}
	n := openNode(t)
	g := start(t, changer, "become", asRoot)
	_, cancel := watchWork(t, n, g)
	g.Begin()
	if line := g.Line(); line != "ids 65534 65534" {
		t.Errorf("traced: %s", line)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	g = start(t, changer, "become", asRoot)
	if _, err := n.Identify(g.ID.PID); err != nil {
		t.Error(err)
	}
	g.Begin()
	if line := g.Line(); line != "ids 65534 0" {
		t.Errorf("not traced: %s", line)
	}
	_, err := n.Watch(node.Watch{Event: node.EventThreadCreated, Proc: g.ID}, func(*node.Hit) {})
	wantError(t, err, omis.NoPermission, "belongs to uid 0", "CAP_SYS_PTRACE")
}
