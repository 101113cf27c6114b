package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
)

// Tests that are killed take nothing down with them by themselves: their gateways and the
// program's folder would stay.

// startTied starts a command that is told to end when this process ends in whatever way.
// PR_SET_PDEATHSIG speaks of the thread that starts it, so that thread stays as long as
// the command.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		for err == nil || errors.Is(err, unix.EINTR) {
			var info unix.Siginfo
			// The child's end is left for cmd.Wait.
			if err = unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err == nil {
				return
			}
		}
	}()
	return <-started
}

// removeInTheEnd starts a process that removes a folder when this one ends in whatever
// way, which the end of its standard input tells; or when it is told to.
func removeInTheEnd(folder string) (now func(), err error) {
	cmd := exec.Command("sh", "-c", `cat; rm -rf "$1"`, "sh", folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		cmd.Wait()
	}, nil
}

// mortalEnv has TestKilledTests be the one that is killed, and names a program for it.
const mortalEnv = "MIRADOR_TEST_TO_BE_KILLED"

// Tests that are killed leave no gateway, and not the program that they made.
func TestKilledTests(t *testing.T) {
	if os.Getenv(mortalEnv) != "" {
		s := startServe(t, os.Geteuid())
		fmt.Printf("serving %d %s\n", s.cmd.Process.Pid, miradorPath)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledTests$")
	cmd.Env = append(os.Environ(), mortalEnv+"="+miradorPath, "TMPDIR="+t.TempDir())
	tests := subject.Start(t, cmd)
	var pid int
	var made string
	for made == "" {
		fmt.Sscanf(tests.Line(), "serving %d %s", &pid, &made)
	}
	tests.Kill()
	eventually(t, "the gateway ends", func() bool {
		state, err := proc.ThreadState(pid, pid)
		return err != nil || strings.Contains("ZX", state)
	})
	eventually(t, "the program goes", func() bool {
		_, err := os.Stat(made)
		return errors.Is(err, fs.ErrNotExist)
	})
}
