//go:build linux

package registrar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// verb says what a request asks for.
type verb string

const (
	set     verb = "set"      // set uprobes; the program comes with the request, and the link with the answer
	hold    verb = "hold"     // hold a link, which comes with the request; there is no answer
	takeOut verb = "take out" // remove the uprobes of the link held under the number of the request
)

// request is one datagram from the monitor. The answer has the same number.
type request struct {
	Number  uint64   `json:"number"`
	Verb    verb     `json:"verb"`
	PID     int      `json:"pid,omitempty"`
	Path    string   `json:"path,omitempty"`
	Offsets []uint64 `json:"offsets,omitempty"`
	Cookies []uint64 `json:"cookies,omitempty"`
}

type answer struct {
	Number uint64   `json:"number"`
	Failed *failure `json:"failed,omitempty"`
}

// failure is an error in an answer.
type failure struct {
	Text        string     `json:"text"`
	Errno       unix.Errno `json:"errno,omitempty"`
	Unsupported bool       `json:"unsupported,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error(), Unsupported: errors.Is(err, ebpf.ErrNotSupported)}
	errors.As(err, &f.Errno)
	return f
}

func (f *failure) Error() string { return f.Text }

func (f *failure) Is(target error) bool {
	return f.Unsupported && target == ebpf.ErrNotSupported || f.Errno != 0 && target == f.Errno
}

// isOfPeer reports whether an error means that the other side has ended.
func isOfPeer(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// maxMessage is enough for a thousand uprobes. A socket accepts larger datagrams.
const maxMessage = 128 << 10

// send sends a message. fd is a descriptor to send with it, or negative.
func send(conn *net.UnixConn, message any, fd int) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("%d bytes are too many for one message", len(text))
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	_, _, err = conn.WriteMsgUnix(text, rights, nil)
	return err
}

// receiver receives messages. One goroutine uses it.
type receiver struct {
	conn *net.UnixConn
	text [maxMessage]byte
}

// receive returns the descriptor that came with a message, or -1. When the other side has ended, the error
// is io.EOF.
func (r *receiver) receive(message any) (fd int, err error) {
	rights := make([]byte, unix.CmsgSpace(4))
	n, m, flags, _, err := r.conn.ReadMsgUnix(r.text[:], rights)
	switch {
	case err != nil:
		return -1, err
	case n == 0:
		return -1, io.EOF
	}
	fd = descriptor(rights[:m])
	if flags&unix.MSG_TRUNC != 0 {
		err = errors.New("a message is too long")
	} else {
		err = json.Unmarshal(r.text[:n], message)
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	return fd, err
}

func descriptor(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1
	}
	return fds[0]
}

// connect makes a connection of a socket.
func connect(socket *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(*net.UnixConn); ok {
		return c, nil
	}
	conn.Close()
	return nil, fmt.Errorf("%s is no socket of a monitor", socket.Name())
}
