//go:build linux && amd64

package warden

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Client is the monitor's side. It starts the warden when there is something
// to guard, and starts another when one was killed. Its methods may be called
// from any goroutine; what a method reports is known to the warden, dead
// monitor or not, when the method returns.
type Client struct {
	argv []string

	mu      sync.Mutex
	conn    int // -1 without a warden
	ended   chan struct{}
	process *os.Process // the warden that conn leads to
	closed  bool
	targets map[int]*target
	stills  map[int]*os.File // pidfds
}

// NewClient makes a client whose wardens are started by argv. With an empty
// argv there is no warden, and the methods do nothing.
func NewClient(argv []string) *Client {
	return &Client{argv: argv, conn: -1, targets: make(map[int]*target), stills: make(map[int]*os.File)}
}

// Hold puts a target under guard; memory is its /proc/PID/mem, which stays the
// caller's.
func (c *Client) Hold(pid int, memory *os.File) error {
	return c.tell(message{verb: hold, pid: pid}, memory)
}

// Plant says that a patch is about to displace bytes at addr.
func (c *Client) Plant(pid int, addr uint64, p Patch) error {
	return c.tell(message{plant, pid, addr, p}, nil)
}

// Clear says that the original bytes are in their place again.
func (c *Client) Clear(pid int, addr uint64) error {
	return c.tell(message{verb: clear, pid: pid, addr: addr}, nil)
}

// Drop says that a target has nothing to guard any more.
func (c *Client) Drop(pid int) error { return c.tell(message{verb: drop, pid: pid}, nil) }

// Still says that a process is about to be stopped by SIGSTOP. When the monitor
// is gone, the warden sets it going. The pidfd stays the caller's, who keeps it
// open until Moving.
func (c *Client) Still(pid int, pidfd *os.File) error {
	return c.tell(message{verb: still, pid: pid}, pidfd)
}

// Moving says that a process goes on.
func (c *Client) Moving(pid int) error { return c.tell(message{verb: moving, pid: pid}, nil) }

// PID is the warden's process id, 0 while there is none.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn < 0 {
		return 0
	}
	return c.process.Pid
}

// Close lets the warden go; it restores what was not cleared.
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

// dismiss ends a warden that cannot be told anything. It may still be there,
// stopped; its monitor hanging up would make it take out what is to stay.
func (c *Client) dismiss() {
	_ = c.process.Kill() // it has ended: all the better
	c.hangUp()
}

// note keeps what a new warden would have to be told.
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

// restart starts a warden and tells it all. One that could not be told all is
// given up: it would seem to guard what it does not know.
func (c *Client) restart() error {
	c.hangUp()
	if err := c.start(); err != nil {
		return fmt.Errorf("cannot start the warden of breakpoints: %w", err)
	}
	if err := c.tellAll(); err != nil {
		c.dismiss()
		return fmt.Errorf("cannot talk to the warden of breakpoints: %w", err)
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
	// One that somebody has stopped must not stop its monitor, once the socket is full.
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
	cmd.Dir = "/" // holds no file system busy
	// A session of its own: what ends the monitor's terminal must not end it.
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

// restarts is how often a warden that has ended is replaced without having been told
// all in between.
const restarts = 3

// attend waits for the end of a warden, and replaces it at once when there is
// still something to guard.
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
	// The next may be killed as well, while it is told. Another failure shows at the
	// next message, which tries again and reports it.
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
