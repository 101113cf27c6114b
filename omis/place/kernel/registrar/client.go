//go:build linux

package registrar

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf/link"
)

// Client is the monitor's side. It starts a registrar when there is something to do, and
// another when that was killed. Its methods may be called from any goroutine.
type Client struct {
	argv    []string
	started func(pid int)

	mu      sync.Mutex
	current *worker // nil before the first request
	closed  bool
}

// ErrKilled says that the registrar was killed while it took uprobes out: some may stand
// that belong to nobody.
var ErrKilled = errors.New("the process that takes uprobes out was killed")

// NewClient makes a client whose registrars are started by argv, and told of when they
// have been, before they do anything. With an empty argv there is none, and the methods
// do the work themselves.
func NewClient(argv []string, started func(pid int)) *Client {
	return &Client{argv: argv, started: started}
}

// restarts is how often a registrar that was killed meanwhile is replaced.
const restarts = 3

// Set sets uprobes. A registrar that is killed meanwhile may leave some standing; the
// next one sets others at the same places, with which the kernel takes those out.
func (c *Client) Set(u Uprobes) (link.Link, error) {
	if len(c.argv) == 0 {
		return u.set()
	}
	q := request{Verb: set, PID: u.PID, Path: u.Path, Offsets: u.Offsets, Cookies: u.Cookies}
	return retry(c, func(w *worker) (link.Link, error) { return w.set(q, u.Program.FD()) })
}

// TakeOut closes a link whose uprobes nobody else keeps, and returns when they are out.
// Links of other things are just closed.
func (c *Client) TakeOut(l link.Link) error {
	if len(c.argv) == 0 || !isOfUprobes(l) {
		return l.Close()
	}
	held, err := retry(c, func(w *worker) (*handle, error) { return w.hold(l) })
	if err != nil {
		return l.Close() // nobody is there to do it
	}
	if err := l.Close(); err != nil {
		return err
	}
	if err := held.takeOut(); err != nil || !held.worker.hasEnded() {
		return err
	}
	return ErrKilled // what it has answered may not have been the end of it
}

// retry does something by a registrar, and once more if that was killed.
func retry[R any](c *Client, do func(*worker) (R, error)) (R, error) {
	var none R
	for range restarts {
		w, err := c.worker()
		if err != nil {
			return none, err
		}
		if r, err := do(w); !errors.Is(err, ErrKilled) {
			return r, err
		}
	}
	return none, fmt.Errorf("%w, %d times in a row", ErrKilled, restarts)
}

// worker is a registrar that lives, as far as is known.
func (c *Client) worker() (*worker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the monitor is closing down")
	}
	if c.current == nil || c.current.hasEnded() {
		w, err := start(c.argv)
		if err != nil {
			return nil, fmt.Errorf("cannot start the process that sets uprobes: %w", err)
		}
		c.started(w.process.Pid)
		c.current = w
	}
	return c.current, nil
}

// PID is the registrar's process id, 0 while there is none.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.current.hasEnded() {
		return 0
	}
	return c.current.process.Pid
}

// Close lets the registrar go, and waits until it has ended.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.current != nil {
		c.current.dismiss()
	}
}
