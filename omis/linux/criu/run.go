//go:build linux

package criu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Logs that CRIU writes to the directory of its images.
const (
	dumpLog    = "dump.log"
	restoreLog = "restore.log"
)

// Refusal is an error that CRIU reported.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "criu: " + e.Reason }

// Dump saves a process with all its descendants into a directory. They continue
// afterwards, unless they were stopped. They must not be traced.
func (p Program) Dump(pid int, folder string) error {
	return p.run(folder, dumpLog, "dump", "--tree", strconv.Itoa(pid), "--leave-running")
}

// Restore restores what Dump saved, with the same process ids, and returns the first
// process. All processes are stopped, as by SIGSTOP.
func (p Program) Restore(folder string) (pid int, err error) { return p.restore(folder) }

func (p Program) restore(folder string, args ...string) (pid int, err error) {
	const pidFile = "restored.pid"
	if err := os.Remove(filepath.Join(folder, pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err // CRIU does not overwrite the file
	}
	args = append([]string{"restore", "--restore-detached", "--leave-stopped", "--pidfile", pidFile}, args...)
	if err := p.run(folder, restoreLog, args...); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(filepath.Join(folder, pidFile))
	if err != nil {
		return 0, fmt.Errorf("criu does not say which process it restored: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// ghostLimit is the size up to which CRIU saves a deleted file that is still open.
const ghostLimit = "64M"

// run runs CRIU, with the options that allow it to save as much as it can: a process of a
// session whose leader is not saved, locked files, open connections, and sockets
// connected to other processes.
//
// By default, CRIU makes iptables drop packets to open connections during a dump, and
// fails without iptables. Here the process continues after the dump, with its
// connections, so those in the image are outdated in any case.
func (p Program) run(folder, log string, args ...string) error {
	args = append(args, "--images-dir", folder, "--log-file", log, p.level,
		"--shell-job", "--file-locks", "--tcp-established", "--ext-unix-sk", "--ghost-limit", ghostLimit)
	if args[0] == "dump" {
		args = append(args, "--network-lock", "skip")
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir = "/" // keeps no file system busy
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile(filepath.Join(folder, log))
	if readErr != nil {
		return fmt.Errorf("criu: %w", err)
	}
	if why := reason(string(text)); why != "" {
		return &Refusal{why}
	}
	return fmt.Errorf("criu: %w, without a reason", err)
}
