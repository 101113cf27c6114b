// Package identity says which users processes and the peers of Unix sockets belong to, as the
// kernel reports it. The gateway imports it. Its tests need root: they start processes of
// several users; those of the gateway take owners from a table.
package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoProcess is the error about a process that does not exist.
var ErrNoProcess = errors.New("there is no such process")

// OfProcess is the user whose process ptrace takes it for: its user's if all its user
// ids are the same and it is dumpable, else root's. A process that took another
// identity, for good or for a while, shows it there.
func OfProcess(pid int) (int, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	// Unlike the folder, which always shows the effective uid, the file is root's
	// when the process is not dumpable.
	info, err := os.Stat(dir + "/mem")
	if errors.Is(err, fs.ErrNotExist) || pid <= 0 {
		return 0, ErrNoProcess
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

// oneUser reports whether the real, effective, saved and file-system uid in a
// status file of /proc are the same.
func oneUser(status []byte) bool {
	_, rest, found := bytes.Cut(status, []byte("\nUid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	ids := bytes.Fields(line)
	return found && len(ids) == 4 && len(slices.CompactFunc(ids, bytes.Equal)) == 1
}

// OfPeer is the uid at the other end of a Unix socket when it connected.
func OfPeer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, fmt.Errorf("cannot read the peer's identity: %w", credErr)
	}
	return int(cred.Uid), nil
}
