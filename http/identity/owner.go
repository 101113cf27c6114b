// Package identity returns the users of processes and of the peers of sockets, as the kernel
// reports them. The gateway imports it. Its tests need root, because they start processes of
// several users; the tests of the gateway take owners from a table.
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

// OfProcess returns the user that owns a process for ptrace: its user if all its user ids are
// equal and it is dumpable, and root otherwise. These conditions do not hold for a process
// that has changed its identity, permanently or temporarily.
func OfProcess(pid int) (int, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	// If the process is not dumpable, this file belongs to root; the directory always belongs
	// to the effective uid.
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

// OfPeer returns the uid that the peer of a Unix socket had when it connected.
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
