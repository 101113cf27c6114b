package gateway

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are the numbers of connections and streams that callers may have open. A part of
// them is reserved for root and the gateway's user.
type Limits struct {
	Connections  int // of one listener
	Others       int // connections of all users of the Unix socket except root and the gateway's user
	User         int // connections of one such user
	Streams      int // of the server
	UserStreams  int // streams of one user, except root and the gateway's user
	Applications int // of one user, except root and the gateway's user
	// Unknown is how long a connection may be silent before its caller is known.
	Unknown time.Duration
}

// A listener uses at most an eighth of the process's file descriptors, so that most of them
// remain for the monitor.
const (
	shareOfDescriptors = 8
	leastConnections   = 32
	mostConnections    = 2048
	mostStreams        = 1024
	mostUserStreams    = 32
	mostApplications   = 64
	unknownTimeout     = 5 * time.Second
)

// DefaultLimits returns limits that fit the number of descriptors that this process may have.
func DefaultLimits() Limits {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		r.Cur = 0
	}
	n := int(min(r.Cur, math.MaxInt32)) / shareOfDescriptors
	n = min(max(n, leastConnections), mostConnections)
	return Limits{
		Connections: n, Others: n * 3 / 4, User: n / 4,
		Streams: min(mostStreams, n), UserStreams: min(mostUserStreams, n/8), Applications: mostApplications, Unknown: unknownTimeout,
	}
}

// streams counts the open streams of all callers. Its methods may be called from any
// goroutine.
type streams struct {
	limits Limits
	// ending is closed when the server begins to shut down: streams do not end by
	// themselves, and Shutdown waits for them.
	ending chan struct{}

	mu     sync.Mutex
	all    int
	byUser map[int]int // of callers who have a limit of their own
}

// take counts a stream that a caller opens, until done is called. The error says which limit
// is reached.
func (s *streams) take(who *Caller) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limits.Streams
	if !who.All {
		if own := s.byUser[who.UID]; own >= s.limits.UserStreams {
			return nil, NewFault(http.StatusTooManyRequests, fmt.Sprintf(
				"%s reads %d streams, and may read no more at a time: close some, or read several probes with one VALUE request", who.Name, own))
		}
		limit = limit * 3 / 4 // the last quarter is for root and the gateway's user
	}
	if s.all >= limit {
		return nil, NewFault(http.StatusServiceUnavailable, fmt.Sprintf("%d streams are being read, and the gateway serves no more at a time", s.all))
	}
	s.count(who, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(who, -1)
	}, nil
}

// count adds to the number of streams. The caller holds mu.
func (s *streams) count(who *Caller, n int) {
	s.all += n
	if who.All {
		return
	}
	if s.byUser[who.UID] += n; s.byUser[who.UID] == 0 {
		delete(s.byUser, who.UID)
	}
}
