//go:build linux && amd64

package linux

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// TestCheckpoint saves a process with breakpoints, ends it and restores it: the restored process has all
// its data, and nothing of the monitor.
func TestCheckpoint(t *testing.T) {
	folder := t.TempDir()
	n := openSaving(t, "here", folder)
	c := startChain(t, 3)
	if cannotSave(t, n, c) {
		return
	}
	var hits atomic.Int64
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: c.ID, Addr: c.Addr}, func(*node.Hit) { hits.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "hits", func() bool { return int(hits.Load()) > 10 })
	if err := n.Checkpoint([]omis.ProcID{c.ID}, "one"); err != nil {
		t.Fatal(err)
	}
	saved := c.length(t)
	seen := int(hits.Load())
	eventually(t, "hits after the checkpoint", func() bool { return int(hits.Load()) > seen+10 })
	if got := c.word(t, c.continued); got != 0 {
		t.Errorf("the program saw %d SIGCONTs", got)
	}
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	c.check(t, n, c.ID)
	owned := belongings(t, c.ID.PID)
	images, err := filepath.Glob(filepath.Join(folder, "one", fmt.Sprint(c.ID.PID), "*.img"))
	if err != nil || len(images) < 5 {
		t.Errorf("images: %v, %v", images, err)
	}

	if _, err := n.Restore("one"); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("restored while the process still runs: %v", err)
	}
	tids, _ := n.Threads(c.ID)
	c.grows(t)
	last := c.length(t)
	c.kill(t)
	ps, err := n.Restore("one")
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 1 || ps[0].PID != c.ID.PID || ps[0] == c.ID {
		t.Fatalf("restored %v of %v", ps, c.ID)
	}
	defer unix.Kill(ps[0].PID, unix.SIGKILL)
	if got := c.length(t); got > saved || got == 0 || saved >= last {
		t.Errorf("restored at %d, saved before %d, ended at %d", got, saved, last)
	}
	time.Sleep(20 * time.Millisecond)
	still := c.length(t)
	if now := c.length(t); now != still {
		t.Error("the restored process runs before it is continued")
	}
	if err := n.Continue(ps[0], nil); err != nil {
		t.Fatal(err)
	}
	c.grows(t)
	c.check(t, n, ps[0])
	if got := c.word(t, c.continued); got != 0 {
		t.Errorf("the restored program saw %d SIGCONTs", got)
	}
	if again := belongings(t, ps[0].PID); again != owned {
		t.Errorf("before:\n%s\nafter:\n%s", owned, again)
	}
	if now, _ := n.Threads(ps[0]); !slices.Equal(now, tids) {
		t.Errorf("threads %v, were %v", now, tids)
	}
	if s, err := proc.ReadStatus(ps[0].PID); err != nil || s.Caught&proc.SignalBit(unix.SIGTRAP) != 0 || s.Tracer != 0 {
		t.Errorf("status %+v, %v", s, err)
	}
}

// TestCheckpointOfStopped checks that saving a stopped process does not make it run.
func TestCheckpointOfStopped(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	c := startChain(t, 2)
	if cannotSave(t, n, c) {
		return
	}
	if err := n.Stop(c.ID, nil); err != nil {
		t.Fatal(err)
	}
	before := [2]uint64{c.length(t), c.word(t, c.chains+16)}
	for range 3 {
		if err := n.Checkpoint([]omis.ProcID{c.ID}, "stopped"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Millisecond)
	if after := [2]uint64{c.length(t), c.word(t, c.chains+16)}; after != before {
		t.Errorf("the chains grew from %v to %v", before, after)
	}
	if err := n.Continue(c.ID, nil); err != nil {
		t.Fatal(err)
	}
	c.grows(t)
	c.check(t, n, c.ID)
	if got := c.word(t, c.continued); got != 0 {
		t.Errorf("the program saw %d SIGCONTs", got)
	}
}

// TestCheckpointOfHeld saves a process while a thread is held at an address; the restored process continues
// from that address.
func TestCheckpointOfHeld(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	c := startChain(t, 2)
	if cannotSave(t, n, c) {
		return
	}
	held := make(chan func(), 1)
	done := false
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: c.ID, Addr: c.Addr}, func(h *node.Hit) {
		if !done {
			done = true
			held <- h.Hold()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	release := <-held
	if err := n.Checkpoint([]omis.ProcID{c.ID}, "held"); err != nil {
		t.Fatal(err)
	}
	release()
	c.grows(t)
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	c.check(t, n, c.ID)
	c.kill(t)
	ps, err := n.Restore("held")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(ps[0].PID, unix.SIGKILL)
	if err := n.Continue(ps[0], nil); err != nil {
		t.Fatal(err)
	}
	c.grows(t)
	c.check(t, n, ps[0])
}

// TestCheckpointRefused checks that the error for a process that CRIU cannot save has CRIU's reason.
func TestCheckpointRefused(t *testing.T) {
	folder := t.TempDir()
	n := openSaving(t, "here", folder)
	if cannotSave(t, n, startChain(t, 1)) {
		return
	}
	// CRIU cannot save a process with one end of a connection without the other end.
	cmd := exec.Command("cat")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	in, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cmd.Wait() }()
	p, err := n.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	err = n.Checkpoint([]omis.ProcID{p}, "refused")
	t.Log(err)
	wantError(t, err, omis.OSError, fmt.Sprintf("cannot save process %d: criu: ", p.PID))
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("a checkpoint that failed leaves %v", left)
	}
	if _, err := n.Restore("refused"); !isEnded(err) {
		t.Errorf("restored what was not saved: %v", err)
	}
	wantError(t, n.Checkpoint([]omis.ProcID{p}, "../elsewhere"), omis.ParameterError, "elsewhere")
}

// TestCheckpointNeedsCRIU checks that the errors without a working CRIU have the reason and the remedy.
func TestCheckpointNeedsCRIU(t *testing.T) {
	g := start(t, build(t, "hammer.c"), "1", "10")
	broken := filepath.Join(t.TempDir(), "criu")
	script := "#!/bin/sh\necho 'Error (criu/vdso.c:1): Unexpected rt vDSO area bounds' >&2\nexit 1\n"
	if err := os.WriteFile(broken, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	n, err := Open(Config{Name: "broken", CRIU: broken, Checkpoints: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	wantError(t, n.Checkpoint([]omis.ProcID{g.ID}, "one"), omis.UnsupportedService, "does not work here: Unexpected rt vDSO area bounds")
	_, err = n.Restore("one")
	wantError(t, err, omis.UnsupportedService, "make criu")

	t.Setenv("PATH", t.TempDir())
	wantError(t, openNode(t).Checkpoint([]omis.ProcID{g.ID}, "one"), omis.UnsupportedService, "there is no program criu")
}

// TestCheckpointKilled kills monitors that save a process again and again. The process continues untraced,
// with its original code.
func TestCheckpointKilled(t *testing.T) {
	criu, folder := criuForTests(t), t.TempDir()
	n := openSaving(t, "here", t.TempDir())
	c := startChain(t, 3)
	if cannotSave(t, n, c) {
		return
	}
	for i := range 8 {
		monitor := startMonitor(t, c.target, fmt.Sprintf("checkpoint %s %s", criu, folder))
		if i%4 == 0 {
			monitor.Line()
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		monitor.Kill()
		c.grows(t) // although CRIU may still be saving the process
		awaitRestored(t, c.target)
		eventually(t, "no CRIU is left", func() bool { return !isNamedByAny(folder) })
	}
	c.check(t, n, c.ID)
}

// isNamedByAny reports whether any process has a text in its arguments.
func isNamedByAny(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), text)
	})
}

// TestCheckpointOfFamily saves and restores a shell with its child, which has breakpoints.
func TestCheckpointOfFamily(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	c := startShellChain(t, 2)
	if cannotSave(t, n, c) {
		return
	}
	shell, err := n.Identify(proc.Parent(c.ID.PID))
	if err != nil {
		t.Fatal(err)
	}
	var hits atomic.Int64
	cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: c.ID, Addr: c.Addr}, func(*node.Hit) { hits.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	// The shell's tree includes its child, but each process is saved once.
	if err := n.Checkpoint([]omis.ProcID{c.ID, shell}, "family"); err != nil {
		t.Fatal(err)
	}
	seen := hits.Load()
	eventually(t, "hits after the checkpoint", func() bool { return hits.Load() > seen+5 })
	if err := cancel(); err != nil {
		t.Fatal(err)
	}
	c.check(t, n, c.ID)
	unix.Kill(shell.PID, unix.SIGKILL)
	unix.Kill(c.ID.PID, unix.SIGKILL)
	c.Cmd.Wait()
	ps, err := n.Restore("family")
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 2 || ps[0].PID != shell.PID || ps[1].PID != c.ID.PID {
		t.Fatalf("restored %v", ps)
	}
	for _, p := range ps {
		defer unix.Kill(p.PID, unix.SIGKILL)
		if err := n.Continue(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.grows(t)
	c.check(t, n, ps[1])
	if proc.Parent(c.ID.PID) != shell.PID {
		t.Error("the child has lost its parent")
	}
}

// TestCheckpointOfStoppedByOthers checks that a process that job control has stopped remains stopped after
// it is saved and restored, although its threads have executed system calls for the monitor meanwhile.
func TestCheckpointOfStoppedByOthers(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	c := startChain(t, 12)
	if cannotSave(t, n, c) {
		return
	}
	if _, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: c.ID, Addr: c.Addr}, func(*node.Hit) {}); err != nil {
		t.Fatal(err)
	}
	unix.Kill(c.ID.PID, unix.SIGSTOP)
	c.awaitStop(t)
	before := c.awaitRest(t)
	if err := n.Checkpoint([]omis.ProcID{c.ID}, "stopped"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if now := c.steps(t); now != before {
		t.Errorf("the node continued a process that SIGSTOP had stopped: %d steps, stopped after %d", now, before)
	}
	c.kill(t)
	ps, err := n.Restore("stopped")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(c.ID.PID, unix.SIGKILL)
	if err := n.Continue(ps[0], nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if now := c.steps(t); now != before {
		t.Error("the restored process runs")
	}
	unix.Kill(c.ID.PID, unix.SIGCONT)
	c.grows(t)
	if got := c.word(t, c.continued); got != 1 {
		t.Errorf("the program saw %d SIGCONTs, want 1", got)
	}
}
