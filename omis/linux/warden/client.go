//go:build linux && amd64

package warden

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// Client is the monitor's side. It starts the warden when there is something to guard,
// and starts another one if a warden was killed. Its methods may be called from any
// goroutine; when a method returns, the warden has received the message, even if the
// monitor dies then.
type Client struct {
	argv []string

	mu      sync.Mutex
	conn    int // -1 without a warden
	ended   chan struct{}
	process *os.Process // the warden at the other end of conn
	closed  bool
	targets map[int]*target
	stills  map[int]*os.File // pidfds
}

// NewClient returns a client that starts wardens by argv. With an empty argv there is no
// warden, and the methods do nothing.
func NewClient(argv []string) *Client {
	return &Client{argv: argv, conn: -1, targets: make(map[int]*target), stills: make(map[int]*os.File)}
}

// Hold begins to guard a target; memory is its /proc/PID/mem, which the caller keeps and
// closes.
func (c *Client) Hold(pid int, memory *os.File) error {
	return c.tell(message{verb: hold, pid: pid}, memory)
}

// Plant reports that a patch is about to displace bytes at addr.
func (c *Client) Plant(pid int, addr uint64, p Patch) error {
	return c.tell(message{plant, pid, addr, p}, nil)
}

// Clear reports that the original bytes are restored.
func (c *Client) Clear(pid int, addr uint64) error {
	return c.tell(message{verb: clear, pid: pid, addr: addr}, nil)
}

// Drop reports that a target has no patches any more.
func (c *Client) Drop(pid int) error { return c.tell(message{verb: drop, pid: pid}, nil) }

// Still reports that the monitor is about to stop a process by SIGSTOP. After the
// monitor's death the warden continues the process. The caller keeps the pidfd open until
// Moving.
func (c *Client) Still(pid int, pidfd *os.File) error {
	return c.tell(message{verb: still, pid: pid}, pidfd)
}

// Moving reports that a process continues.
func (c *Client) Moving(pid int) error { return c.tell(message{verb: moving, pid: pid}, nil) }

// PID returns the warden's process id, 0 if there is no warden.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn < 0 {
		return 0
	}
	return c.process.Pid
}

// Close ends the warden, which restores what was not cleared.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	ended := c.ended
	c.hangUp()
	c.mu.Unlock()
	if ended != nil {
		<-ended
	}
	return nil
}

func (c *Client) tell(m message, file *os.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.argv) == 0 || c.closed {
		return nil
	}
	c.note(m, file)
	if c.conn < 0 {
		return c.restart()
	}
	if err := send(c.conn, m, file); err != nil {
		c.dismiss()
		return c.restart()
	}
	return nil
}

// dismiss ends a warden that does not receive messages. It may be stopped, and if it woke
// up after its connection closed, it would remove patches that must stay.
func (c *Client) dismiss() {
	_ = c.process.Kill() // fails only if it has ended
	c.hangUp()
}

// note records the state that a new warden must be told.
func (c *Client) note(m message, file *os.File) {
	t := c.targets[m.pid]
	switch {
	case m.verb == hold:
		c.targets[m.pid] = &target{memory: file, planted: make(map[uint64]Patch)}
	case m.verb == plant && t != nil:
		t.planted[m.addr] = m.Patch
	case m.verb == clear && t != nil:
		delete(t.planted, m.addr)
	case m.verb == drop:
		delete(c.targets, m.pid)
	case m.verb == still:
		c.stills[m.pid] = file
	case m.verb == moving:
		delete(c.stills, m.pid)
	}
}

// restart starts a warden and sends it the whole state. If that fails it ends the warden,
// which would seem to guard patches that it does not know.
func (c *Client) restart() error {
	c.hangUp()
	if err := c.start(); err != nil {
		return omis.Errorf(omis.OSError, "cannot start the warden of breakpoints: %w", err)
	}
	if err := c.tellAll(); err != nil {
		c.dismiss()
		return omis.Errorf(omis.OSError, "cannot talk to the warden of breakpoints: %w", err)
	}
	return nil
}

func (c *Client) tellAll() error {
	for pid, pidfd := range c.stills {
		if err := send(c.conn, message{verb: still, pid: pid}, pidfd); err != nil {
			return err
		}
	}
	for pid, t := range c.targets {
		if err := send(c.conn, message{verb: hold, pid: pid}, t.memory); err != nil {
			return err
		}
		for addr, p := range t.planted {
			if err := send(c.conn, message{plant, pid, addr, p}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) start() error {
	// A stopped warden must not block its monitor when the socket is full.
	patience := unix.Timeval{Sec: 2}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "warden")
	defer theirs.Close()
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience); err != nil {
		unix.Close(pair[0])
		return err
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Stdin = theirs
	cmd.Dir = "/" // keeps no file system busy
	// A session of its own, so that the end of the monitor's terminal does not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		unix.Close(pair[0])
		return err
	}
	ended := make(chan struct{})
	c.conn, c.ended, c.process = pair[0], ended, cmd.Process
	go c.attend(cmd, ended)
	return nil
}

// restarts is the number of attempts to replace a warden that has ended.
const restarts = 3

// attend waits for the end of a warden, and replaces it at once if there is something to
// guard.
func (c *Client) attend(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(ended)
	if c.ended != ended || c.closed {
		return
	}
	c.hangUp()
	if err == nil || len(c.targets)+len(c.stills) == 0 {
		return
	}
	// The next warden may be killed as well while it receives the state. If all attempts
	// fail, the next message tries again and reports the error.
	for range restarts {
		if c.restart() == nil {
			return
		}
	}
}

func (c *Client) hangUp() {
	if c.conn >= 0 {
		unix.Close(c.conn)
		c.conn, c.ended = -1, nil
	}
}

func send(conn int, m message, file *os.File) error {
	var oob []byte
	if file != nil {
		oob = unix.UnixRights(int(file.Fd()))
	}
	for {
		err := unix.Sendmsg(conn, m.encode(), oob, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}
