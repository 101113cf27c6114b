// Package subject contains the programs that tests observe: small programs in C and C++, in
// testdata, that print a line at each step and wait for commands.
//
// Only the tests of omis/linux, its subpackages, omis/place and cli import it.
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

// patience limits the time for the next line of a subject. A subject that takes longer hangs, even
// on a busy machine.
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
		for range s.lines { // discard lines that the test did not read
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

// Line returns the next line that the subject prints.
func (s *Subject) Line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			s.t.Fatalf("the target printed no more lines: %v", s.Cmd.Wait())
		}
		return line
	case <-time.After(patience):
		s.t.Fatalf("the target hangs\n%s", stuck(s.PID))
		return ""
	}
}

// IsSilent fails the test if the subject prints a line before a time is over.
func (s *Subject) IsSilent(until time.Duration) {
	s.t.Helper()
	select {
	case line := <-s.lines:
		s.t.Fatalf("the target printed %q, want nothing", line)
	case <-time.After(until):
	}
}

// Tell writes a line to the subject's standard input.
func (s *Subject) Tell(format string, args ...any) { fmt.Fprintf(s.in, format+"\n", args...) }

// Begin writes an empty line, for which the subject waits.
func (s *Subject) Begin() { s.Tell("") }

// HangUp closes the subject's standard input.
func (s *Subject) HangUp() { s.in.Close() }

// Kill ends the subject by SIGKILL.
func (s *Subject) Kill() {
	s.Cmd.Process.Kill()
	s.Cmd.Wait()
}

// Finish waits for the end of the subject and returns its last line.
func (s *Subject) Finish() string {
	s.t.Helper()
	last := s.Line()
	s.HangUp()
	if err := s.Cmd.Wait(); err != nil {
		s.t.Fatalf("the target ended with %v after %q", err, last)
	}
	return last
}

// Alone returns the last line of a program that is not observed.
func Alone(t testing.TB, path string, args ...string) string {
	t.Helper()
	s := Start(t, exec.Command(path, args...))
	s.Line()
	s.Begin()
	return s.Finish()
}
