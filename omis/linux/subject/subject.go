// Package subject contains the programs that tests observe: small programs in C and C++, in
// testdata, that print a line at each step and wait for commands.
//
// Only the tests of omis/linux, its subpackages, omis/place and cli import it.
package subject

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"mirador/examples/child"
)

// patience limits the time for the next line of a subject. A subject that takes longer hangs, even
// on a busy machine.
const patience = 4 * time.Minute

// Subject is a running program.
type Subject struct {
	*child.Child
	t testing.TB
}

// Start starts a program. It is killed when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Subject {
	t.Helper()
	running, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Kill)
	return &Subject{running, t}
}

// Line returns the next line that the subject prints.
func (s *Subject) Line() string {
	s.t.Helper()
	line, err := s.Child.Line(patience)
	switch {
	case errors.Is(err, child.ErrHangs):
		s.t.Fatalf("%v\n%s", err, stuck(s.PID))
	case err != nil:
		s.t.Fatal(err)
	}
	return line
}

// IsSilent fails the test if the subject prints a line before a time is over.
func (s *Subject) IsSilent(until time.Duration) {
	s.t.Helper()
	select {
	case line := <-s.Lines:
		s.t.Fatalf("the target printed %q, want nothing", line)
	case <-time.After(until):
	}
}

// Tell writes a line to the subject's standard input.
func (s *Subject) Tell(format string, args ...any) {
	_ = s.Child.Tell(format, args...) // Line says how a subject has ended
}

// Begin writes an empty line, for which the subject waits.
func (s *Subject) Begin() { s.Tell("") }

// Finish waits for the end of the subject and returns its last line.
func (s *Subject) Finish() string {
	s.t.Helper()
	last := s.Line()
	s.HangUp()
	if err := s.Wait(); err != nil {
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
