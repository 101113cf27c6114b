package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// processOwner is the uid that ptrace would compare with: the owner of the
// process's entry in /proc, which is its effective uid, or root if it is not
// dumpable (it changed its identity, or cannot be read).
func processOwner(pid int) (int, error) {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if errors.Is(err, fs.ErrNotExist) || pid <= 0 {
		return 0, NewFault(http.StatusNotFound, fmt.Sprintf("there is no process %d", pid))
	}
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}
