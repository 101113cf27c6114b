//go:build linux && amd64

package subject

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mirador/examples/child"
)

// Patience is the time limit for what normally takes a second or two, and a minute on a
// busy machine.
const Patience = 120 * time.Second

// Target is a running program that obeys commands. Only one goroutine may give it
// commands at a time.
type Target struct {
	*Program
	// End ends the program by closing its input; it kills the program after a while. It may
	// be called again.
	End func() error

	child  *child.Child
	pid    int
	errors bytes.Buffer
}

// Start starts the program.
func (p *Program) Start() (*Target, error) { return p.StartBy(exec.Command(p.Path)) }

// StartBy starts the program by a command that passes on its standard input and output, and waits
// until it is ready.
func (p *Program) StartBy(cmd *exec.Cmd) (*Target, error) {
	t, err := p.Launch(cmd)
	if err != nil {
		return nil, err
	}
	if err := t.Ready(); err != nil {
		return nil, err
	}
	return t, nil
}

// StartCopy starts a copy of the program in a file of its own, so that other uprobes do not
// affect it.
func (p *Program) StartCopy() (*Target, error) {
	own, err := p.Copy()
	if err != nil {
		return nil, err
	}
	return own.Start()
}

// Launch is StartBy without waiting.
func (p *Program) Launch(cmd *exec.Cmd) (*Target, error) {
	t := &Target{Program: p}
	cmd.Stderr = &t.errors
	cmd.WaitDelay = Patience
	var err error
	if t.child, err = child.Start(cmd); err != nil {
		return nil, err
	}
	t.End = sync.OnceValue(t.finish)
	return t, nil
}

// Ready waits until the program is ready. If that fails it ends the program.
func (t *Target) Ready() error {
	for {
		line, err := t.line()
		if err != nil {
			return errors.Join(err, t.End())
		}
		if _, err := fmt.Sscanf(line, "ready %d", &t.pid); err == nil {
			return nil
		}
	}
}

// PID returns the pid of the program itself, even if another one started it.
func (t *Target) PID() int { return t.pid }

func (t *Target) finish() error {
	t.child.HangUp()
	const grace = 5 * time.Second
	late := time.AfterFunc(grace, func() { _ = t.child.Cmd.Process.Kill() })
	defer late.Stop()
	t.child.Discard()
	return t.child.Wait()
}

// line reads a line within the time limit.
func (t *Target) line() (string, error) {
	line, err := t.child.Line(Patience)
	if err == nil {
		return line, nil
	}
	t.child.Kill() // then its error output is complete
	if said := strings.TrimSpace(t.errors.String()); said != "" {
		return "", fmt.Errorf("%w: %s", err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return "", err
}

// Ask sends a command, and reads the numbers of the answer.
func (t *Target) Ask(numbers int, format string, args ...any) ([]float64, error) {
	if err := t.child.Tell(format, args...); err != nil {
		return nil, err
	}
	line, err := t.line()
	if err != nil {
		return nil, err
	}
	words := strings.Fields(line)
	if len(words) < numbers {
		return nil, fmt.Errorf("%s answered %q", filepath.Base(t.Path), line)
	}
	values := make([]float64, numbers)
	for i := range values {
		if _, err := fmt.Sscanf(words[i], "%g", &values[i]); err != nil {
			return nil, fmt.Errorf("%s answered %q", filepath.Base(t.Path), line)
		}
	}
	return values, nil
}

// Pin binds the program to one CPU; -1 unbinds it.
func (t *Target) Pin(cpu int) error {
	_, err := t.Ask(0, "pin %d", cpu)
	return err
}
