package gateway

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what callers can hold open. Those whom the gateway serves without
// bounds otherwise, root and its own user, have a share that nobody else can take.
type Limits struct {
	Connections int // of one listener
	Others      int // of these, how many users of the Unix socket may have who are neither root nor the gateway's
	User        int // of these, how many one such user may have
	Streams     int // of the server
	UserStreams int // how many streams a user may read who is neither root nor the gateway's
	// Unknown is how long a connection may be silent that has not shown who it is.
	Unknown time.Duration
}

// A listener takes an eighth of the descriptors that the process may have, so that
// connections leave most of them to the monitor.
const (
	shareOfDescriptors = 8
	leastConnections   = 32
	mostConnections    = 2048
	mostStreams        = 1024
	mostUserStreams    = 32
	unknownTimeout     = 5 * time.Second
)

// DefaultLimits fit the number of descriptors that this process may have.
func DefaultLimits() Limits {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		r.Cur = 0
	}
	n := int(min(r.Cur, math.MaxInt32)) / shareOfDescriptors
	n = min(max(n, leastConnections), mostConnections)
	return Limits{
		Connections: n, Others: n * 3 / 4, User: n / 4,
		Streams: min(mostStreams, n), UserStreams: min(mostUserStreams, n/8), Unknown: unknownTimeout,
	}
}

// streamCount counts the open streams of all callers. Its methods may be called from
// any goroutine.
type streamCount struct {
	mu     sync.Mutex
	all    int
	byUser map[int]int // of those who have a limit of their own
}

// take counts a stream that a caller opens; the caller of take calls done when it
// ends. The error says which limit is reached.
func (c *streamCount) take(who *Caller, l Limits) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	if !who.All {
		own = c.byUser[who.UID]
		if own >= l.UserStreams {
			return nil, NewFault(http.StatusTooManyRequests, fmt.Sprintf(
				"%s reads %d streams, and may read no more at a time: close some, or read several probes with one VALUE request", who.Name, own))
		}
	}
	limit := l.Streams
	if !who.All { // the last quarter is for root and the gateway's user
		limit = limit * 3 / 4
	}
	if c.all >= limit {
		return nil, NewFault(http.StatusServiceUnavailable, fmt.Sprintf("%d streams are being read, and the gateway serves no more at a time", c.all))
	}
	c.all++
	if !who.All {
		if c.byUser == nil {
			c.byUser = make(map[int]int)
		}
		c.byUser[who.UID] = own + 1
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if who.All {
			return
		}
		if c.byUser[who.UID]--; c.byUser[who.UID] == 0 {
			delete(c.byUser, who.UID)
		}
	}, nil
}
