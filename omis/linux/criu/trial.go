//go:build linux

package criu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
)

// life is the life of a trial's process in seconds, unless it is ended before.
const life = "30"

// trial saves a small process, ends it and restores it. The process has a session of its
// own and no open file but the null device, so that nothing it inherits can make the
// trial fail.
func trial(path string) error {
	p := Program{path, "-v4"} // a detailed log for users
	folder, err := os.MkdirTemp("", "criu-trial-")
	if err != nil {
		return fmt.Errorf("cannot try %s: %w", p.path, err)
	}
	defer os.RemoveAll(folder)
	pid, err := startAlone("sleep", life)
	if err != nil {
		return fmt.Errorf("cannot try %s: %w", p.path, err)
	}
	err = p.Dump(pid, folder)
	end(pid)
	if err != nil {
		return p.unfit("cannot save a process here", err, filepath.Join(folder, dumpLog))
	}
	// This process reaps the restored one, which must be its child: not every init reaps.
	pid, err = p.restore(folder, "--restore-sibling")
	if err != nil {
		return p.unfit("saves processes here, but cannot restore them", err, filepath.Join(folder, restoreLog))
	}
	end(pid)
	return nil
}

func (p Program) unfit(does string, cause error, log string) error {
	why := cause.Error()
	var r *Refusal
	if errors.As(cause, &r) {
		why = r.Reason
	}
	text, _ := os.ReadFile(log) // the file is missing if CRIU failed earlier
	return &Unfit{Path: p.path, Does: does, Reason: why, Log: string(text)}
}

// startAlone starts a program that inherits nothing from this process, and waits until it
// sleeps, when it has opened its files and mapped its libraries.
func startAlone(name string, args ...string) (pid int, err error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	WithholdFiles()
	fd := null.Fd()
	pid, err = syscall.ForkExec(path, append([]string{name}, args...), &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{fd, fd, fd}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	const patience, pause = 2 * time.Second, time.Millisecond
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if state, err := proc.ThreadState(pid, pid); err != nil || state == "S" {
			break
		}
	}
	return pid, nil
}

// end kills a child and waits until its pid is free.
func end(pid int) {
	_ = unix.Kill(pid, unix.SIGKILL) // fails only if the child has ended
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
