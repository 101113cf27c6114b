package targets

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mirador/examples/targets/report"
)

// patience is the time limit for an operation of a target that takes at most seconds on an
// idle machine, with probes in it.
const patience = 2 * time.Minute

// Process is a running target.
type Process struct {
	PID  int
	Path string // of its program

	output string // file with its standard output and error
	exited chan struct{}
	err    error // valid after exited is closed
}

// Start starts a target and returns when it is ready. At the end of the test it ends the
// target, and the test fails if a process of the target remains.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	return start(t, Build(t, name), nil, args)
}

// StartAs is Start for another user, with a copy of the program. It requires root.
func StartAs(t testing.TB, uid int, name string, args ...string) *Process {
	t.Helper()
	dir := SharedDir(t)
	return start(t, copyTo(t, Build(t, name), dir), &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, args)
}

// SharedDir returns a temporary directory that every user may read and enter.
func SharedDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func start(t testing.TB, path string, who *syscall.Credential, args []string) *Process {
	t.Helper()
	mark := NoneLeft(t)
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), mark)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who}
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start target %s: %v", path, err)
	}
	p := &Process{PID: cmd.Process.Pid, Path: path, output: out.Name(), exited: make(chan struct{})}
	go func() { // Wait also works for a target that a monitor traces
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() { p.end(t) })
	p.waitFor(t, "be ready", func() bool { return bytes.Contains(p.bytes(), fmt.Appendf(nil, "ready %d\n", p.PID)) })
	return p
}

// end stops the target if it is still running.
func (p *Process) end(t testing.TB) {
	t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.Exited() {
			return
		}
		syscall.Kill(p.PID, sig)
		syscall.Kill(p.PID, syscall.SIGCONT)
		select {
		case <-p.exited:
			return
		case <-time.After(patience / 3):
			t.Errorf("target %d did not end at %v", p.PID, sig)
		}
	}
}

// Exited reports whether the target has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Wait waits until the target ends, and returns the error of exec.Cmd.Wait.
func (p *Process) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("target %d did not end in %v", p.PID, patience)
	}
	return p.err
}

// Signal sends a signal to the target.
func (p *Process) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID, sig); err != nil {
		t.Fatalf("cannot send %v to target %d: %v", sig, p.PID, err)
	}
}

// Go starts the work of a target with --wait, and ends a target with --stay.
func (p *Process) Go(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGUSR2)
}

// Output returns the target's output so far.
func (p *Process) Output() string { return string(p.bytes()) }

// Report asks mmul for a report and returns it.
func (p *Process) Report(t testing.TB) *report.Report {
	t.Helper()
	before := 0
	if r, err := report.Last(bytes.NewReader(p.bytes())); err == nil {
		before = r.Number
	}
	p.Signal(t, syscall.SIGUSR1)
	var r *report.Report
	p.waitFor(t, "report", func() (ok bool) {
		var err error
		r, err = report.Last(bytes.NewReader(p.bytes()))
		return err == nil && r.Number > before
	})
	return r
}

// Done waits until mmul has finished its work, and returns its last report.
func (p *Process) Done(t testing.TB) *report.Report {
	t.Helper()
	var r *report.Report
	p.waitFor(t, "be done", func() (ok bool) {
		var err error
		r, err = report.Last(bytes.NewReader(p.bytes()))
		return err == nil && r.State == "done"
	})
	return r
}

func (p *Process) bytes() []byte {
	b, err := os.ReadFile(p.output)
	if err != nil {
		return nil
	}
	return b
}

func (p *Process) waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if p.Exited() && !done() {
			t.Fatalf("target %d ended (%v) and did not %s; it printed:\n%s", p.PID, p.err, what, p.Output())
		}
		if time.Now().After(end) {
			t.Fatalf("target %d did not %s in %v; it printed:\n%s", p.PID, what, patience, p.Output())
		}
	}
}
