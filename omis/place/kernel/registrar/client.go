//go:build linux

package registrar

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf/link"
)

// Client is the monitor's side. It starts a registrar for the first request, and another one if that was
// killed. Its methods may be called from any goroutine.
type Client struct {
	argv    []string
	started func(pid int)

	mu      sync.Mutex
	current *worker // nil before the first request
	closed  bool
}

// ErrKilled reports that the registrar was killed while it removed uprobes, so some of them may stay.
var ErrKilled = errors.New("the process that takes uprobes out was killed")

// NewClient makes a client that starts registrars by argv. It calls started when a registrar has started,
// before it sends requests. With an empty argv there are no registrars, and the client does the work
// itself.
func NewClient(argv []string, started func(pid int)) *Client {
	return &Client{argv: argv, started: started}
}

// restarts is how often a request is repeated with another registrar if the registrar is killed.
const restarts = 3

// Set sets uprobes. If a registrar is killed meanwhile, the kernel may leave some of its uprobes; the
// uprobes that the next registrar sets at the same addresses remove them.
func (c *Client) Set(u Uprobes) (link.Link, error) {
	if len(c.argv) == 0 {
		return u.set()
	}
	q := request{Verb: set, PID: u.PID, Path: u.Path, Offsets: u.Offsets, Cookies: u.Cookies}
	return retry(c, func(w *worker) (link.Link, error) { return w.set(q, u.Program.FD()) })
}

// TakeOut closes a link that nothing else refers to, and returns when its uprobes have been removed. The
// registrar does this for links of uprobes; TakeOut closes other links itself.
func (c *Client) TakeOut(l link.Link) error {
	if len(c.argv) == 0 || !isOfUprobes(l) {
		return l.Close()
	}
	held, err := retry(c, func(w *worker) (*handle, error) { return w.hold(l) })
	if err != nil {
		return l.Close() // no registrar can be started
	}
	if err := l.Close(); err != nil {
		return err
	}
	if err := held.takeOut(); err != nil || !held.worker.hasEnded() {
		return err
	}
	return ErrKilled // the registrar may have been killed after its answer, while the kernel still removed uprobes
}

// retry makes a request to a registrar, and repeats it if the registrar is killed.
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

// worker returns a registrar that runs, as far as is known.
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

// PID returns the process id of the registrar, 0 if there is none.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.current.hasEnded() {
		return 0
	}
	return c.current.process.Pid
}

// Close ends the registrar, and waits for its end.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.current != nil {
		c.current.dismiss()
	}
}
