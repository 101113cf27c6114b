//go:build linux && amd64

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mirador/bench/subject"
)

// CompileTraced compiles the program with static tracepoints.
func CompileTraced(ctx context.Context, sources, dir string) (*subject.Program, error) {
	p, err := subject.CompileAs(ctx, sources, "subject", filepath.Join(dir, "traced"), "-DWITH_TRACEPOINTS", "-I"+sources, "-llttng-ust", "-ldl")
	if err != nil {
		return nil, &subject.Missing{Why: "the program cannot be compiled with lttng-ust's tracepoints (scripts/install bench gets liblttng-ust-dev on Debian)"}
	}
	return p, nil
}

// lttng records static tracepoints into memory, with a daemon of its own. Neither the
// daemon nor the program runs as root, because root's daemons serve the whole machine.
func (p *Peers) lttng(task subject.Task) (*subject.Standing, error) {
	if p.Traced == nil {
		return nil, p.Untraced
	}
	s := &lttngSession{}
	var err error
	if s.daemonPath, err = find("lttng-sessiond"); err != nil {
		return nil, err
	}
	if s.home, err = os.MkdirTemp("", "mirador-lttng-"); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.end())
	}
	t, err := s.start(p.Traced)
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	function := "counted"
	if task.Timed {
		function = "traced"
	}
	standing := &subject.Standing{Target: t, Function: function, Stop: func() error { return errors.Join(t.End(), s.end()) }}
	if task.Timed {
		standing.Mean = s.mean
	}
	return standing, nil
}

// lttngSession is a daemon with one session, and the home directory of an unprivileged
// user.
type lttngSession struct {
	home, daemonPath string
	daemon           *tool
}

const (
	nobody  = 65534
	session = "bench"
)

// by makes a command run as the session's user, in the user's home directory.
func (s *lttngSession) by(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = s.home
	// A program waits until it is registered, without a time limit.
	cmd.Env = append(os.Environ(), "HOME="+s.home, "LTTNG_HOME="+s.home, "LTTNG_UST_REGISTER_TIMEOUT=-1")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

func (s *lttngSession) begin() error {
	if os.Getuid() == 0 {
		if err := os.Chown(s.home, nobody, nobody); err != nil {
			return err
		}
	}
	var err error
	if s.daemon, err = launch(s.by(exec.Command(s.daemonPath, "--no-kernel"))); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", session, "--snapshot", "--output", filepath.Join(s.home, "trace")},
		{"enable-event", "--userspace", "--session", session, "mirador_bench:*"},
		{"start", session},
	} {
		if err := s.do(args...); err != nil {
			return err
		}
	}
	return nil
}

// do runs a command of lttng, when the daemon is ready.
func (s *lttngSession) do(args ...string) error {
	var err error
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		if _, err = output(s.by(exec.Command("lttng", append([]string{"--no-sessiond"}, args...)...))); err == nil || args[0] != "create" {
			return err
		}
	}
	return err
}

// start starts a copy of the program that the user may execute.
func (s *lttngSession) start(p *subject.Program) (*subject.Target, error) {
	copied, err := p.CopyTo(filepath.Join(s.home, "program"))
	if err != nil {
		return nil, err
	}
	return copied.StartBy(s.by(exec.Command(copied.Path)))
}

func (s *lttngSession) end() error {
	if s.daemon != nil {
		_ = s.daemon.cmd.Process.Signal(syscall.SIGTERM)
		s.daemon.said()
	}
	return os.RemoveAll(s.home)
}

var lttngEvent = regexp.MustCompile(`^\[(\d+)\.(\d{9})\].* mirador_bench:(entry|exit):`)

// mean returns the mean of the times between entries and exits in the buffers.
func (s *lttngSession) mean() (float64, error) {
	reader, err := find("babeltrace2")
	if err != nil {
		return 0, err
	}
	if err := s.do("snapshot", "record", "--session", session); err != nil {
		return 0, err
	}
	out, err := output(exec.Command(reader, "--clock-seconds", filepath.Join(s.home, "trace")))
	if err != nil {
		return 0, err
	}
	return meanOfEvents(out)
}

func meanOfEvents(out string) (float64, error) {
	var sum, n, entry int64
	for line := range strings.Lines(out) {
		m := lttngEvent.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		ns, err := strconv.ParseInt(m[1]+m[2], 10, 64)
		switch {
		case err != nil:
		case m[3] == "entry":
			entry = ns
		case entry != 0:
			sum, n, entry = sum+ns-entry, n+1, 0
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("lttng recorded no call")
	}
	return float64(sum) / float64(n), nil
}
