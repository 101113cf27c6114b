package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// mayTouch tells whether the caller may observe an application now. What its
// processes were when they were taken in is not enough: one that executed a
// set-user-ID program since is not its user's any more.
func (c *Caller) mayTouch(app *App) bool {
	if c.All {
		return true
	}
	foreign := func(p Process) bool {
		uid, err := processOwner(p.PID)
		return !p.Gone && err == nil && uid != c.UID
	}
	return c.MayTouch(app.Owner) && !slices.ContainsFunc(app.Processes, foreign)
}

// processOwner is whose process ptrace takes it for: its user's if all its user
// ids are the same and it is dumpable, else root's. A process that took another
// identity, for good or for a while, shows it there.
func processOwner(pid int) (int, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	// Unlike the folder, which always shows the effective uid, the file is root's
	// when the process is not dumpable.
	info, err := os.Stat(dir + "/mem")
	if errors.Is(err, fs.ErrNotExist) || pid <= 0 {
		return 0, NewFault(http.StatusNotFound, fmt.Sprintf("there is no process %d", pid))
	}
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil || !oneUser(status) {
		return 0, nil
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}

// oneUser tells whether the real, effective, saved and file-system uid in a
// status file of /proc are the same.
func oneUser(status []byte) bool {
	_, rest, found := bytes.Cut(status, []byte("\nUid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	ids := bytes.Fields(line)
	return found && len(ids) == 4 && len(slices.CompactFunc(ids, bytes.Equal)) == 1
}
