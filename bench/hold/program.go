//go:build linux && amd64

package hold

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// patience limits what should take a second at most.
const patience = 30 * time.Second

// compile builds the reference programs.
func compile(ctx context.Context, sources, dir string) error {
	for _, name := range []string{"target", "int3", "rendezvous", "stop", "watch"} {
		cmd := exec.CommandContext(ctx, "cc", "-O2", "-no-pie", "-pthread", "-o", filepath.Join(dir, name), filepath.Join(sources, name+".c"))
		if msg, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot compile %s.c: %w\n%s", name, err, msg)
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "gotarget"), filepath.Join(sources, "gotarget", "main.go"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile gotarget: %w\n%s", err, msg)
	}
	return nil
}

// program is a running reference program or tool.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// launch starts a program. The caller may set cmd's output, which launch then does not
// read.
func launch(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, cmd.Start()
}

// end kills the program if it has not ended. End a target before its tracer.
func (p *program) end() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// line reads a line within the time limit.
func (p *program) line() (string, error) {
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	s, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s printed no line within %v", filepath.Base(p.cmd.Path), patience)
	}
	return strings.TrimSpace(s), nil
}

// say sends a line and reads the answer.
func (p *program) say(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return "", err
	}
	return p.line()
}

// ask sends a line and reads an answer that is a number.
func (p *program) ask(format string, args ...any) (int64, error) {
	s, err := p.say(format, args...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(s, 10, 64)
}

// number reads a line with a number.
func (p *program) number() (int64, error) {
	s, err := p.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(s, 10, 64)
}

// target is a program that calls work on command.
type target struct {
	*program
	work, page uint64
}

func startTarget(path string, args ...string) (*target, error) {
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	p, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	t := &target{program: p}
	s, err := p.line()
	if err == nil {
		_, err = fmt.Sscanf(s, "ready %v %v", &t.work, &t.page)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// calls makes every thread call work n times, and returns the time that this took.
func (t *target) calls(n int) (time.Duration, error) {
	ns, err := t.ask("%d", n)
	return time.Duration(ns), err
}

func (t *target) pid() int { return t.cmd.Process.Pid }

// within returns an error if do does not end within a limit, after killing the targets it
// may be waiting for.
func within(limit time.Duration, do func() error, kill ...*target) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		for _, t := range kill {
			_ = t.cmd.Process.Kill()
		}
		return errors.New("a step did not end within " + limit.String())
	}
}
