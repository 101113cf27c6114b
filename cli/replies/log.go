// Package replies keeps the replies of a tool for clients that read them as a stream: replies
// to conditional requests, and replies that belong to no request (OMIS 7.1.3).
//
// Only cli imports it; it imports http and omis. A Log may be used by several goroutines. Each
// stream has its own goroutine. It ends when the stream is cancelled, or when the log is
// closed and the stream has taken all its replies.
package replies

import (
	"fmt"
	"sync"
	"time"

	gateway "mirador/http"
	"mirador/omis"
)

// Entry is a reply with its number. Later logs of the same tool use greater numbers.
type Entry = gateway.StreamedReply

// Limits are the limits of a log.
type Limits struct {
	// Waiting replies have not been taken by every stream, or by any stream if there is none.
	Waiting, WaitingBytes int
	// Taken replies are kept for streams that were interrupted.
	Taken, TakenBytes int
}

// Usual are the limits of the logs of a gateway.
var Usual = Limits{Waiting: 1 << 16, WaitingBytes: 32 << 20, Taken: 1 << 12, TakenBytes: 4 << 20}

// Log contains the replies to a tool. Add never blocks. If a stream is too slow or connects
// too late, replies are dropped, and the stream receives one reply instead that tells how many.
type Log struct {
	limits Limits

	mu      sync.Mutex
	entries []Entry // consecutive numbers
	sizes   []int   // of each entry together with all entries before it
	dropped int     // total size of the dropped entries
	first   uint64  // number of the log's first reply ever
	next    uint64  // number of the next reply
	taken   uint64  // highest number that any stream has taken
	streams map[*stream]struct{}
	closed  bool
}

// New returns an empty log.
func New(limits Limits) *Log {
	// The numbers start at 1000 times the milliseconds, so that no log reaches the numbers of
	// the next one.
	first := uint64(time.Now().UnixMilli()) * 1000
	return &Log{limits: limits, first: first, next: first, taken: first - 1, streams: make(map[*stream]struct{})}
}

// Add appends a reply.
func (l *Log) Add(r omis.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	total := l.bytes(0, len(l.entries)) + l.dropped + sizeOf(r)
	l.entries, l.sizes = append(l.entries, Entry{ID: l.next, Reply: r}), append(l.sizes, total)
	l.next++
	l.trim()
	for s := range l.streams {
		s.wake()
	}
}

// trim drops the oldest replies that exceed the limits.
func (l *Log) trim() {
	waiting := l.taken + 1
	for s := range l.streams {
		waiting = min(waiting, s.next)
	}
	all, oldest := len(l.entries), l.oldest()
	taken := 0
	if waiting > oldest {
		taken = int(waiting - oldest)
	}
	drop := 0
	for drop < taken && (taken-drop > l.limits.Taken || l.bytes(drop, taken) > l.limits.TakenBytes) {
		drop++
	}
	if all-taken > l.limits.Waiting || l.bytes(taken, all) > l.limits.WaitingBytes {
		for drop = taken; all-drop > l.limits.Waiting || l.bytes(drop, all) > l.limits.WaitingBytes; {
			drop++
		}
	}
	if drop > 0 {
		// Release the dropped replies: later entries keep the array alive.
		clear(l.entries[:drop])
		l.entries, l.sizes, l.dropped = l.entries[drop:], l.sizes[drop:], l.sizes[drop-1]
	}
}

// oldest returns the number of the oldest reply in the log.
func (l *Log) oldest() uint64 { return l.next - uint64(len(l.entries)) }

// bytes returns the size of the entries from i to j, excluding j.
func (l *Log) bytes(i, j int) int {
	sum := func(i int) int {
		if i == 0 {
			return l.dropped
		}
		return l.sizes[i-1]
	}
	return sum(j) - sum(i)
}

// Close closes the log. Streams end after they have taken all its replies.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.streams {
		s.wake()
	}
}

// Streams returns the number of open streams.
func (l *Log) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// stream is the position of a reader. The log's lock guards next.
type stream struct {
	log  *Log
	next uint64 // number of the next reply to take
	more chan struct{}
	out  chan Entry
	stop chan struct{}
}

// Stream sends the replies after the reply with number after; 0 means the last reply that any
// stream has taken. The first entry has no reply, but the number before that of the first
// reply, so that a reader that loses the connection can resume there. Stream sends until
// cancel is called, or until all replies of a closed log are taken.
func (l *Log) Stream(after uint64) (<-chan Entry, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &stream{log: l, next: after + 1, more: make(chan struct{}, 1), out: make(chan Entry), stop: make(chan struct{})}
	if after == 0 {
		s.next = l.taken + 1
	}
	// For a number that is not used yet, start with the next reply.
	s.next = min(s.next, l.next)
	l.streams[s] = struct{}{}
	go s.send(s.next - 1)
	return s.out, sync.OnceFunc(func() { close(s.stop) })
}

func (s *stream) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *stream) send(before uint64) {
	defer close(s.out)
	defer s.leave()
	select {
	case s.out <- Entry{ID: before}:
	case <-s.stop:
		return
	}
	for {
		e, any, closed := s.look()
		switch {
		case any:
			select {
			case s.out <- e:
			case <-s.stop:
				s.putBack(e)
				return
			}
		case closed:
			return
		default:
			select {
			case <-s.more:
			case <-s.stop:
				return
			}
		}
	}
}

// look returns the next reply of the stream and counts it as taken, because its reader may
// open another stream immediately.
func (s *stream) look() (e Entry, any, closed bool) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.oldest()
	switch {
	case s.next < l.first:
		e = Entry{ID: l.first - 1, Reply: lost("the replies of an earlier gateway, or of a tool of this name that has ended, are lost here")}
	case s.next < oldest:
		e = Entry{ID: oldest - 1, Reply: lost(fmt.Sprintf("%d replies were lost here: they were not read in time", oldest-s.next))}
	case s.next < l.next:
		e = l.entries[s.next-oldest]
	default:
		return e, false, l.closed
	}
	s.next = e.ID + 1
	l.taken = max(l.taken, e.ID)
	l.trim()
	return e, true, false
}

// putBack undoes look for a reply that the reader has not received.
func (s *stream) putBack(e Entry) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == e.ID {
		l.taken--
	}
}

func (s *stream) leave() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	delete(s.log.streams, s)
	s.log.trim()
}

func lost(msg string) omis.Reply { return omis.Reply{{{Status: omis.NoMemory, Msg: msg}}} }

// sizeOf estimates the memory of a reply.
func sizeOf(r omis.Reply) int {
	n := 0
	for _, results := range r {
		n += 24
		for i := range results {
			n += 96 + len(results[i].Msg) + valuesSize(results[i].Values)
			for _, o := range results[i].Objects {
				n += 16 + len(o)
			}
		}
	}
	return n
}

func valuesSize(values []omis.Value) (n int) {
	for i := range values {
		n += 96 + len(values[i].Str) + valuesSize(values[i].List)
	}
	return n
}
