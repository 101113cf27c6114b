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

// patience is for what should take a second at most.
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

// program is a reference program, or a peer, that runs.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// launch starts a program; cmd may have its output set, which is not read then.
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

// end kills what has not ended by itself. A target goes before its tracer does.
func (p *program) end() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// line reads a line, which must come in time.
func (p *program) line() (string, error) {
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	s, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s said nothing more within %v", filepath.Base(p.cmd.Path), patience)
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

// ask is say for an answer that is a number.
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

// target is a program that calls work when it is told to.
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

// calls has every thread call work n times, and tells how long that took.
func (t *target) calls(n int) (time.Duration, error) {
	ns, err := t.ask("%d", n)
	return time.Duration(ns), err
}

func (t *target) pid() int { return t.cmd.Process.Pid }

// within gives up waiting for what does not end by itself, after killing what it
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
