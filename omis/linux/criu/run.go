//go:build linux && amd64

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

// Dump saves a process with all its descendants into a folder. They go on as
// they were, stopped ones stopped. Nobody may trace them.
func (p Program) Dump(pid int, folder string) error {
	return p.run(folder, "dump.log", "dump", "--tree", strconv.Itoa(pid), "--leave-running")
}

// Restore brings back what Dump saved, with the process ids it had, and returns
// the first process. All are stopped, as by SIGSTOP.
func (p Program) Restore(folder string) (pid int, err error) {
	const pidFile = "restored.pid"
	if err := os.Remove(filepath.Join(folder, pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err // CRIU writes no file that is there
	}
	if err := p.run(folder, "restore.log", "restore", "--restore-detached", "--leave-stopped", "--pidfile", pidFile); err != nil {
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
func (p Program) run(folder, log string, args ...string) error {
	args = append(args, "--images-dir", folder, "--log-file", log, "-v1",
		"--shell-job", "--file-locks", "--tcp-established", "--ext-unix-sk", "--ghost-limit", ghostLimit)
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
		return fmt.Errorf("criu: %s", why)
	}
	return fmt.Errorf("criu: %w, without a reason", err)
}
