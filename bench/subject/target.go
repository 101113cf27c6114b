//go:build linux && amd64

package subject

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Patience is the time limit for what normally takes a second or two, and a minute on a
// busy machine.
const Patience = 120 * time.Second

// Target is a running program that obeys commands. Only one goroutine may give it
// commands at a time.
type Target struct {
	*Program
	pid    int
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
	end    func() error
}

// Start starts the program.
func (p *Program) Start() (*Target, error) { return p.StartBy(exec.Command(p.Path)) }

// StartBy starts the program by a command that passes on its standard input and output.
func (p *Program) StartBy(cmd *exec.Cmd) (*Target, error) {
	t := &Target{Program: p, cmd: cmd}
	t.end = sync.OnceValue(t.finish)
	cmd.Stderr = &t.errors
	var err error
	if t.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(out)
	cmd.WaitDelay = Patience
	return t, cmd.Start()
}

// Ready waits until the program is ready.
func (t *Target) Ready() error {
	for {
		line, err := t.line()
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(line, "ready %d", &t.pid); err == nil {
			return nil
		}
	}
}

// PID returns the pid of the program itself, even if another one started it.
func (t *Target) PID() int { return t.pid }

// End ends the program by closing its input; it kills the program after a while. It may
// be called again.
func (t *Target) End() error { return t.end() }

func (t *Target) finish() error {
	_ = t.in.Close()
	const grace = 5 * time.Second
	late := time.AfterFunc(grace, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, t.out)
	return t.cmd.Wait()
}

// line reads a line within the time limit.
func (t *Target) line() (string, error) {
	late := time.AfterFunc(Patience, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	s, err := t.out.ReadString('\n')
	if err == nil {
		return strings.TrimSpace(s), nil
	}
	_ = t.cmd.Wait() // then its error output is complete
	name := filepath.Base(t.cmd.Path)
	if said := strings.TrimSpace(t.errors.String()); said != "" {
		return "", fmt.Errorf("%s ended: %s", name, lastLine(said))
	}
	return "", fmt.Errorf("%s printed no line within %v, or ended", name, Patience)
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// Ask sends a command, and reads the numbers of the answer.
func (t *Target) Ask(numbers int, format string, args ...any) ([]float64, error) {
	if _, err := fmt.Fprintf(t.in, format+"\n", args...); err != nil {
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
