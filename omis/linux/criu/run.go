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

// The logs that CRIU writes beside its images.
const (
	dumpLog    = "dump.log"
	restoreLog = "restore.log"
)

// Refusal is what CRIU says when it cannot do something.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "criu: " + e.Reason }

// Dump saves a process with all its descendants into a folder. They go on as
// they were, stopped ones stopped. Nobody may trace them.
func (p Program) Dump(pid int, folder string) error {
	return p.run(folder, dumpLog, "dump", "--tree", strconv.Itoa(pid), "--leave-running")
}

// Restore brings back what Dump saved, with the process ids it had, and returns
// the first process. All are stopped, as by SIGSTOP.
func (p Program) Restore(folder string) (pid int, err error) { return p.restore(folder) }

func (p Program) restore(folder string, args ...string) (pid int, err error) {
	const pidFile = "restored.pid"
	if err := os.Remove(filepath.Join(folder, pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err // CRIU writes no file that is there
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

// ghostLimit is up to which size a deleted file that is still open is saved with
// its process.
const ghostLimit = "64M"

// run has CRIU do something. What may be saved is as much as CRIU is able to: a
// process of a session whose leader stays behind, locked files, open
// connections, and sockets to send to somebody outside.
//
// CRIU would have iptables drop packets to open connections while it saves them,
// and fail where there is none. The process goes on when it is saved, and its
// connections with it: those in the image are history in any case.
func (p Program) run(folder, log string, args ...string) error {
	args = append(args, "--images-dir", folder, "--log-file", log, p.level,
		"--shell-job", "--file-locks", "--tcp-established", "--ext-unix-sk", "--ghost-limit", ghostLimit)
	if args[0] == "dump" {
		args = append(args, "--network-lock", "skip")
	}
	cmd := exec.Command(p.path, args...)
	cmd.Dir = "/" // holds no file system busy
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
