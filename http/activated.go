package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstActivated is the descriptor of the first socket that systemd passes (sd_listen_fds(3)).
const firstActivated = 3

// mostActivated limits the sockets that are taken over.
const mostActivated = 16

// Activated returns the sockets that systemd opened for this process, none without socket
// activation. The rules are those of ListenUnix and ListenTCP. Processes that this one starts
// do not inherit the sockets.
func Activated(secure *tls.Config) (listeners []net.Listener, err error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) || count == "" {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > mostActivated {
		return nil, fmt.Errorf("LISTEN_FDS is %q; systemd passes the number of sockets in it, at most %d", count, mostActivated)
	}
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	for fd := firstActivated; fd < firstActivated+n; fd++ {
		l, err := activated(fd, secure)
		if err != nil {
			return listeners, fmt.Errorf("socket %d of systemd: %w", fd, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func activated(fd int, secure *tls.Config) (net.Listener, error) {
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "socket of systemd")
	defer file.Close() // the listener has a copy
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	switch at := l.Addr().(type) {
	case *net.UnixAddr:
		l.(*net.UnixListener).SetUnlinkOnClose(false) // systemd keeps the socket
		return newGuard(l, DefaultLimits(), true), nil
	case *net.TCPAddr:
		if secure == nil && !at.IP.IsLoopback() {
			err = fmt.Errorf("%s is reachable from other machines, which needs TLS", at)
			break
		}
		guarded := newGuard(l, DefaultLimits(), secure == nil)
		if secure != nil {
			return tls.NewListener(guarded, secure), nil
		}
		return guarded, nil
	default:
		err = errors.New("it is no stream socket of a Unix or TCP address")
	}
	l.Close()
	return nil, err
}
