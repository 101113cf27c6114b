// Package subject has the programs that tests observe: small ones in C and C++,
// in testdata, that say by lines where they are, and go on when they are told to.
//
// Tests of omis/linux, of its packages, of omis/place and of cli import it, nothing else.
package subject

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a subject may take for its next line. One that takes longer
// hangs, however busy the machine is.
const patience = 4 * time.Minute

// Compile compiles a program from sources and with flags, and returns its path.
func Compile(t testing.TB, name string, args ...string) string {
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

// Subject is a running program.
type Subject struct {
	Cmd *exec.Cmd
	PID int

	t     testing.TB
	in    io.WriteCloser
	lines chan string
}

// Start starts a program. It is killed when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Subject {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Subject{Cmd: cmd, PID: cmd.Process.Pid, t: t, in: in, lines: make(chan string, 16)}
	go s.listen(out)
	t.Cleanup(func() {
		s.Kill()
		for range s.lines { // nobody wanted to hear
		}
	})
	return s
}

func (s *Subject) listen(out io.Reader) {
	defer close(s.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.lines <- strings.TrimSpace(lines.Text())
	}
}

// Line is the next that the subject says.
func (s *Subject) Line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			s.t.Fatalf("the target said nothing more: %v", s.Cmd.Wait())
		}
		return line
	case <-time.After(patience):
		s.t.Fatalf("the target hangs\n%s", stuck(s.PID))
		return ""
	}
}

// IsSilent fails the test if the subject says something before a time is over.
func (s *Subject) IsSilent(until time.Duration) {
	s.t.Helper()
	select {
	case line := <-s.lines:
		s.t.Fatalf("the target was to be silent, and said %q", line)
	case <-time.After(until):
	}
}

// Tell tells the subject a line.
func (s *Subject) Tell(format string, args ...any) { fmt.Fprintf(s.in, format+"\n", args...) }

// Begin has a subject go on that waits for any line.
func (s *Subject) Begin() { s.Tell("") }

// HangUp has the subject hear no more.
func (s *Subject) HangUp() { s.in.Close() }

// Kill ends the subject by SIGKILL.
func (s *Subject) Kill() {
	s.Cmd.Process.Kill()
	s.Cmd.Wait()
}

// Finish waits for the end of the subject and returns what it says last.
func (s *Subject) Finish() string {
	s.t.Helper()
	last := s.Line()
	s.HangUp()
	if err := s.Cmd.Wait(); err != nil {
		s.t.Fatalf("the target ended with %v after %q", err, last)
	}
	return last
}

// Alone is what a program says last when nobody observes it.
func Alone(t testing.TB, path string, args ...string) string {
	t.Helper()
	s := Start(t, exec.Command(path, args...))
	s.Line()
	s.Begin()
	return s.Finish()
}
