package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookUp returns the absolute path of a program.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("cannot start %s: %w", name, errors.Unwrap(err))
	}
	return filepath.Abs(path)
}

// freePort returns a free port if a command contains "{port}".
func (r *Runner) freePort(command string) (string, error) {
	if !strings.Contains(command, port) {
		return "", nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// load is a command that loads a server.
type load struct {
	cmd *exec.Cmd
	out strings.Builder
}

// shell starts a shell command in a process group of its own.
func (r *Runner) shell(command string, t *subject) (*load, error) {
	l := &load{cmd: exec.Command("sh", "-c", strings.ReplaceAll(command, port, t.port))}
	l.cmd.Env = r.environment()
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	return l, r.Keeper.Kill(l.cmd.Process.Pid)
}

// end ends a command; l may be nil.
func (l *load) end(k *Keeper) {
	if l != nil {
		syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		l.cmd.Wait()
		k.Forget(l.cmd.Process.Pid)
	}
}

// early returns an error if the command of a duet has ended; l may be nil.
func (l *load) early() error {
	if l == nil {
		return nil
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, l.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || info.Signo == 0 {
		return nil
	}
	return errors.New("was compared under a load that has ended; it must last until the gate ends it: let it repeat, as in --load 'while curl -s localhost:{port}/all; do :; done'")
}

// run runs a shell command to its end.
func (r *Runner) run(ctx context.Context, command string, t *subject) error {
	l, err := r.shell(command, t)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = l.cmd.Wait()
	r.Keeper.Forget(l.cmd.Process.Pid)
	if ctx.Err() != nil {
		return fmt.Errorf("the command %q did not end: %w", command, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(l.out.String()))
	}
	return nil
}

// whileReady is the pause between attempts to reach a server.
const whileReady = 50 * time.Millisecond

// begin lets a program run that the gate has started, and waits until a server answers.
func (r *Runner) begin(ctx context.Context, t *subject) error {
	if t.own {
		if _, err := r.Client.Continue(ctx, t.app); err != nil {
			return err
		}
	}
	if r.Ready == "" {
		return nil
	}
	for {
		err := r.run(ctx, r.Ready, t)
		if err == nil {
			return nil
		}
		select {
		case <-t.ended:
			return t.failed("ended before --ready %q succeeded (%v)", r.Ready, err)
		case <-ctx.Done():
			return t.failed("was not ready in time: --ready %q failed (%v)", r.Ready, err)
		case <-time.After(whileReady):
		}
	}
}
