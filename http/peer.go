package gateway

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peerContext puts the identity of a Unix socket's peer into the context of its
// connection. The kernel vouches for it: SO_PEERCRED is what the peer was when
// it connected. On other connections requests identify themselves.
func peerContext(ctx context.Context, conn net.Conn) context.Context {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, err := peerUID(local)
	if err != nil {
		return withCaller(ctx, stranger)
	}
	return withCaller(ctx, peer(uid, os.Geteuid()))
}

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
