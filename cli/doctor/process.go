package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// startChild starts a process on which checks are tried. The caller ends it. startChild waits
// for a sign of life, because os/exec returns while the kernel still loads the program, and until
// then the process has no code.
func startChild() (pid int, end func(), err error) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("cannot start a process to try it on: %w", err)
	}
	end = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	sign := []byte("?")
	if _, err = in.Write(sign); err == nil {
		_, err = io.ReadFull(out, sign)
	}
	if err != nil {
		end()
		return 0, nil, fmt.Errorf("cannot start a process to try it on: %w", err)
	}
	return cmd.Process.Pid, end, nil
}

// startUnrelated starts a process that is not a descendant of this one, which matters for
// ptrace_scope 1 of yama.
func startUnrelated() (pid int, end func(), err error) {
	out, err := exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		return 0, nil, fmt.Errorf("cannot start a process to try it on: %w", err)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0, nil, err
	}
	return pid, func() { syscall.Kill(pid, syscall.SIGKILL) }, nil
}

// traced runs do while this thread traces a process, which is stopped.
func traced(pid int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := seize(pid); err != nil {
		return err
	}
	defer unix.PtraceDetach(pid)
	if err := unix.PtraceInterrupt(pid); err != nil {
		return fmt.Errorf("cannot stop the process: %w", err)
	}
	var status unix.WaitStatus
	if _, err := wait(pid, &status); err != nil {
		return fmt.Errorf("cannot wait for the process: %w", err)
	}
	return do()
}

func seize(pid int) error {
	if err := unix.PtraceSeize(pid); err != nil {
		return fmt.Errorf("PTRACE_SEIZE: %w", err)
	}
	return nil
}

func wait(pid int, status *unix.WaitStatus) (int, error) {
	for {
		n, err := unix.Wait4(pid, status, unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// textAddress returns an address in the code of a process.
func textAddress(pid int) (uint64, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "r-xp" {
			continue
		}
		start, _, _ := strings.Cut(fields[0], "-")
		return strconv.ParseUint(start, 16, 64)
	}
	return 0, errors.New("the process has no code")
}
