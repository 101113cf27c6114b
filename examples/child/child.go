// Package child runs programs that obey lines: each reads commands from its standard input, and
// answers by lines. Tests, benchmarks and torture observe such programs.
//
// One goroutine at a time uses a Child.
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Child is a running program.
type Child struct {
	Cmd   *exec.Cmd
	PID   int
	Lines <-chan string // what it prints, without white space around; closed when it has ended
	Wait  func() error  // Cmd.Wait, which drops lines that were not read; it may be called again
	in    io.WriteCloser
}

// ErrHangs reports that a program has printed no line within the time limit.
var ErrHangs = errors.New("it hangs")

// longest is the length of the longest line.
const longest = 1 << 20

// Start starts a program. Unless the caller has set it, the standard error is that of this process.
func Start(cmd *exec.Cmd) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, longest)
		for scanner.Scan() {
			lines <- strings.TrimSpace(scanner.Text())
		}
	}()
	return &Child{Cmd: cmd, PID: cmd.Process.Pid, Lines: lines, Wait: sync.OnceValue(cmd.Wait), in: in}, nil
}

// Tell sends a line.
func (c *Child) Tell(format string, args ...any) error {
	_, err := fmt.Fprintf(c.in, format+"\n", args...)
	return err
}

// Line returns the next line. It returns ErrHangs if the program takes longer than patience, and
// how the program ended if it has.
func (c *Child) Line(patience time.Duration) (string, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case line, ok := <-c.Lines:
		if !ok {
			return "", c.Death()
		}
		return line, nil
	case <-late.C:
		return "", fmt.Errorf("%s has printed nothing for %v: %w", c.name(), patience, ErrHangs)
	}
}

// Ask sends a line, and returns the next line.
func (c *Child) Ask(patience time.Duration, format string, args ...any) (string, error) {
	if err := c.Tell(format, args...); err != nil {
		return "", fmt.Errorf("%s takes no line: %w", c.name(), err)
	}
	return c.Line(patience)
}

// Death returns an error that says how the program ended.
func (c *Child) Death() error {
	if err := c.Wait(); err != nil {
		return fmt.Errorf("%s ended: %w", c.name(), err)
	}
	return errors.New(c.name() + " ended")
}

func (c *Child) name() string { return filepath.Base(c.Cmd.Path) }

// HangUp closes the program's standard input.
func (c *Child) HangUp() { c.in.Close() }

// Discard reads what the program prints until it ends.
func (c *Child) Discard() {
	for range c.Lines {
	}
}

// Kill ends the program by SIGKILL. Processes that it has started may still have its output.
func (c *Child) Kill() {
	_ = c.Cmd.Process.Kill() // it may have ended
	_ = c.Wait()             // the error says that it was killed
	c.Discard()
}
