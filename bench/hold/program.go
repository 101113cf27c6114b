//go:build linux && amd64

package hold

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"mirador/bench/subject"
	"mirador/examples/child"
)

// patience limits what should take a second at most.
const patience = 30 * time.Second

// compile builds the reference programs.
func compile(ctx context.Context, sources, dir string) error {
	for _, name := range []string{"target", "int3", "rendezvous", "stop", "watch"} {
		if _, err := subject.Compile(ctx, sources, name, dir); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "gotarget"), filepath.Join(sources, "gotarget", "main.go"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile gotarget: %w\n%s", err, msg)
	}
	return nil
}

// ask sends a line to a reference program, and reads an answer that is a number of nanoseconds.
func ask(p *child.Child, format string, args ...any) (time.Duration, error) {
	if err := p.Tell(format, args...); err != nil {
		return 0, err
	}
	return nanoseconds(p)
}

// nanoseconds reads a line with a number of nanoseconds.
func nanoseconds(p *child.Child) (time.Duration, error) {
	line, err := p.Line(patience)
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(ns), err
}

// target is a program that calls work on command.
type target struct {
	*child.Child
	work, page uint64
}

func startTarget(path string, args ...string) (*target, error) {
	p, err := child.Start(exec.Command(path, args...))
	if err != nil {
		return nil, err
	}
	t := &target{Child: p}
	line, err := p.Line(patience)
	if err == nil {
		_, err = fmt.Sscanf(line, "ready %v %v", &t.work, &t.page)
	}
	if err != nil {
		t.Kill()
		return nil, err
	}
	return t, nil
}

// calls makes every thread call work n times, and returns the time that this took.
func (t *target) calls(n int) (time.Duration, error) {
	return ask(t.Child, "%d", n)
}

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
			_ = t.Cmd.Process.Kill()
		}
		return errors.New("a step did not end within " + limit.String())
	}
}
