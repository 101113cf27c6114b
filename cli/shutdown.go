package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// longestEnd limits how long a gateway takes to end: its requests may take as long as grace,
// and so may the release of its processes.
const longestEnd = 3 * grace

// ending ends the process if the gateway cannot end. What the gateway waits for may depend on
// a target: the kernel blocks a thread that reads a file of a FUSE server that does not
// answer. The target then is as after a SIGKILL of the gateway.
type ending struct {
	limit time.Duration
	flush func() // writes the journal, and lets the next gateway start
	exit  func(status int)
	out   io.Writer

	mu   sync.Mutex
	what string
}

// waitFor records what the end of the gateway has to wait for from now on.
func (e *ending) waitFor(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.what = what
}

// watch waits until ctx ends, and ends the process if done is not called in time.
func (e *ending) watch(ctx context.Context) (done func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		select {
		case <-time.After(e.limit):
			e.force()
		case <-ended:
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}

// force ends the process, also if the disk or the reader of its output is blocked.
func (e *ending) force() {
	const patience = time.Second
	written := make(chan struct{})
	go func() {
		defer close(written)
		e.mu.Lock()
		what := e.what
		e.mu.Unlock()
		fmt.Fprintf(e.out, "mirador: the gateway was told to end %v ago and still waits for %s; it ends now\n", e.limit, what)
		e.flush()
	}()
	select {
	case <-written:
	case <-time.After(patience):
	}
	e.exit(exitFailed)
}
