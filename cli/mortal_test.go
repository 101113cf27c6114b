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

// A killed test process cannot clean up. These functions make sure that its gateways and its built
// program are removed all the same.

// startTied starts a command that receives SIGTERM when this process ends in any way.
// PR_SET_PDEATHSIG refers to the thread that starts the command, so this thread is kept until the
// command has ended.
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
			// WNOWAIT leaves the child to cmd.Wait.
			if err = unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err == nil {
				return
			}
		}
	}()
	return <-started
}

// removeInTheEnd starts a process that removes a folder when this process ends in any way, which
// closes the other's standard input, or when now is called.
func removeInTheEnd(folder string) (now func(), err error) {
	cmd := exec.Command("sh", "-c", `cat; rm -rf "$1"`, "sh", folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not reach it
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

// mortalEnv makes TestKilledTests the process that is killed, and names the path of its program.
const mortalEnv = "MIRADOR_TEST_TO_BE_KILLED"

// TestKilledTests checks that killed tests leave neither a gateway nor the built program.
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
	eventually(t, "the program is removed", func() bool {
		_, err := os.Stat(made)
		return errors.Is(err, fs.ErrNotExist)
	})
}
