package deliver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a sink that sends documents to a Unix socket: to a stream as the lines of a file,
// to a datagram socket a line in each datagram. A document is delivered when the receiver
// has read it: what is in its queue is lost if the receiver ends.
type socket struct {
	path string
	user User

	fd   int // -1: not connected
	sent int // documents that were sent over this connection and not read yet
}

// connectSocket connects to a socket with the rights of a user.
func connectSocket(a Address, u User) (*socket, error) {
	s := &socket{path: a.url.Path, user: u, fd: -1}
	return s, s.connect()
}

func (s *socket) connect() (err error) {
	s.sent = 0
	s.fd, err = as(s.user, s.dial, func(fd int) { unix.Close(fd) })
	if err != nil {
		s.fd = -1
	}
	return err
}

// dial connects to the socket. No part of the path may be a symbolic link, because another
// user could have made it lead to a socket of this user.
func (s *socket) dial() (int, error) {
	file, err := unix.Openat2(unix.AT_FDCWD, s.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return -1, fmt.Errorf("cannot open %s: a part of the path is a symbolic link; give the path that it leads to", s.path)
	}
	if err != nil {
		return -1, fmt.Errorf("cannot open %s: %w", s.path, err)
	}
	defer unix.Close(file)
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return -1, fmt.Errorf("%s is no socket", s.path)
	}
	// The kernel checks the right to write to the socket that was opened, not to one that has the
	// path by now.
	to := &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/thread-self/fd/%d", file)}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return -1, err
		}
		if err = unix.Connect(fd, to); err == nil {
			return fd, nil
		}
		unix.Close(fd)
		if !errors.Is(err, unix.EPROTOTYPE) {
			return -1, fmt.Errorf("cannot connect to %s: %w", s.path, err)
		}
	}
	return -1, fmt.Errorf("%s is neither a stream nor a datagram socket", s.path)
}

// readTime is how long the receiver may take to read what it was sent before the state of
// the queue shows that it does not. The documents stay where they are.
const readTime = 2 * time.Second

// write sends the first documents that it has not sent, and waits until the receiver has read
// them.
func (s *socket) write(ctx context.Context, items []item) (n int, err error) {
	if s.fd < 0 {
		if err := s.connect(); err != nil {
			return 0, err
		}
	}
	n, err = s.deliver(ctx, items)
	if no := new(refused); err != nil && !errors.Is(err, errUnread) && !errors.As(err, &no) {
		s.disconnect()
		err = fmt.Errorf("cannot write to %s: %w", s.path, err)
	}
	return n, err
}

var errUnread = errors.New("the receiver does not read what it was sent")

func (s *socket) deliver(ctx context.Context, items []item) (int, error) {
	end := time.Now().Add(readTime)
	if s.sent == 0 {
		if err := s.send(ctx, items, end); err != nil {
			return 0, err
		}
	}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		unread, err := unix.IoctlGetInt(s.fd, unix.TIOCOUTQ)
		if err != nil {
			return 0, err
		}
		// The receiver's end discards what is in its queue, but reports an error before that.
		if code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			return 0, errors.Join(err, unix.Errno(code))
		}
		if unread == 0 {
			n := s.sent
			s.sent = 0
			return n, nil
		}
		if time.Now().After(end) {
			return 0, errUnread
		}
		select {
		case <-ctx.Done():
			return 0, errUnread
		case <-time.After(pause):
		}
	}
}

// send sends documents while the socket takes them, at least one. A line that was sent in
// part is completed; if that takes too long, the connection must be closed.
func (s *socket) send(ctx context.Context, items []item, end time.Time) error {
	for i := range items {
		line := items[i].appendLine(nil)
		for rest := line; len(rest) > 0; {
			n, err := unix.SendmsgN(s.fd, rest, nil, nil, unix.MSG_NOSIGNAL)
			if rest = rest[max(n, 0):]; err == nil {
				continue
			}
			switch {
			case errors.Is(err, unix.EMSGSIZE):
				return s.tooLong(i, &items[i], len(line))
			case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
				return err
			case len(rest) == len(line) && i > 0:
				return nil
			case time.Now().After(end), ctx.Err() != nil:
				return os.ErrDeadlineExceeded
			}
			time.Sleep(time.Millisecond)
		}
		s.sent = i + 1
	}
	return nil
}

// tooLong returns the error for a document that does not fit into a datagram.
func (s *socket) tooLong(before int, i *item, length int) error {
	if before > 0 {
		return nil // first those before it
	}
	return &refused{fmt.Errorf("document %d has %d bytes, which is too long for a datagram", i.Number, length)}
}

func (s *socket) disconnect() {
	unix.Close(s.fd)
	s.fd = -1
}

func (s *socket) close() {
	if s.fd >= 0 {
		s.disconnect()
	}
}
