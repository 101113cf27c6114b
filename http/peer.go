package gateway

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the uid at the other end of a Unix socket when it connected.
func peerUID(conn *net.UnixConn) (int, error) {
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

// peer makes a caller of a uid: root and the server's own user may do everything,
// others what they could do to their own processes.
func peer(uid, server int) *Caller {
	return &Caller{
		Name: fmt.Sprintf("uid %d", uid),
		Role: Debug,
		UID:  uid,
		All:  uid == 0 || uid == server,
	}
}
