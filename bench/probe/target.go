//go:build linux && amd64

package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience is for what should take a second at most.
const patience = 30 * time.Second

func compile(ctx context.Context, source, out string) error {
	if msg, err := exec.CommandContext(ctx, "cc", "-O2", "-no-pie", "-o", out, source).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile %s: %w\n%s", source, err, msg)
	}
	return nil
}

// target is the program that is probed.
type target struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	path string
	at   map[string]uint64 // addresses of functions' entries
	ret  map[string]uint64 // and of their returns
}

// base is where a program that is not position independent is loaded.
const base = 0x400000

func startTarget(path string) (*target, error) {
	t := &target{cmd: exec.Command(path), path: path, at: make(map[string]uint64), ret: make(map[string]uint64)}
	t.cmd.Stderr = os.Stderr
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(out)
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := t.line()
	var a [4]uint64
	if err == nil {
		_, err = fmt.Sscanf(line, "ready %v %v %v %v", &a[0], &a[1], &a[2], &a[3])
	}
	if err != nil {
		t.end()
		return nil, err
	}
	t.at["pushed"], t.ret["pushed"], t.at["moved"], t.ret["moved"] = a[0], a[1], a[2], a[3]
	return t, nil
}

func (t *target) pid() int { return t.cmd.Process.Pid }

func (t *target) end() {
	_ = t.cmd.Process.Kill()
	_ = t.cmd.Wait()
}

// line reads a line, which must come in time.
func (t *target) line() (string, error) {
	late := time.AfterFunc(patience, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	s, err := t.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the target said nothing more within %v", patience)
	}
	return strings.TrimSpace(s), nil
}

// calls has a function called n times, and tells how many nanoseconds one took.
func (t *target) calls(function string, n int) (float64, error) {
	if _, err := fmt.Fprintf(t.in, "%s %d\n", function, n); err != nil {
		return 0, err
	}
	s, err := t.line()
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(s, 10, 64)
	return float64(ns) / float64(n), err
}
