package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/owned"
)

// Untrusted reports that another user serves a Unix socket, or could replace it. Nothing was
// sent to it.
type Untrusted struct {
	Place  Place
	Reason error
}

func (e *Untrusted) Error() string {
	return fmt.Sprintf("nothing was sent to %s: %v. If you trust that user, name it with --gateway-user or MIRADOR_GATEWAY_USER", e.Place, e.Reason)
}

func (e *Untrusted) Unwrap() error { return e.Reason }

// trusted returns the users whose gateway may receive this user's requests: root, this user,
// and the named one.
func trusted(named string) ([]int, error) {
	list := []int{0, os.Geteuid()}
	if named == "" {
		named = os.Getenv("MIRADOR_GATEWAY_USER")
	}
	if named == "" {
		return list, nil
	}
	if uid, err := strconv.ParseUint(named, 10, 31); err == nil {
		return append(list, int(uid)), nil
	}
	u, err := user.Lookup(named)
	if err != nil {
		return nil, fmt.Errorf("cannot find the gateway's user: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	return append(list, uid), err
}

// dialTimeout limits the time to connect.
const dialTimeout = 5 * time.Second

// dialSocket connects to a gateway's socket. Before anything is sent, it checks that a trusted
// user listens.
func dialSocket(ctx context.Context, place Place, users []int) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", place.Socket)
	if err != nil {
		return nil, err
	}
	err = checkServer(conn, users)
	if err == nil && !strings.HasPrefix(place.Socket, "@") { // an abstract socket has no directory
		err = owned.Trusted(filepath.Dir(place.Socket), users...)
	}
	if err != nil {
		conn.Close()
		return nil, &Untrusted{place, err}
	}
	return conn, nil
}

// checkServer checks the uid that the server had when it started to listen, as recorded by the
// kernel.
func checkServer(conn net.Conn, users []int) error {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%T is not a Unix socket", conn)
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return errors.Join(err, credErr)
	}
	if slices.Contains(users, int(cred.Uid)) {
		return nil
	}
	return fmt.Errorf("uid %d listens there (pid %d), neither root nor you", cred.Uid, cred.Pid)
}
