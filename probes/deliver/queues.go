package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Store keeps the documents that wait. *journal.Journal is one.
type Store interface {
	Keys(prefix string) []string
	Get(key string, value any) (bool, error)
	// Update writes values and removes those that are nil. It writes all values before it removes
	// any, so that an interrupted Update loses none.
	Update(values map[string]any) error
}

// changes are new values of a Store.
type changes = map[string]any

// Queues are the queues of a gateway to destinations outside of it. The methods may be called
// from any goroutine.
type Queues struct {
	rules Rules
	saved Store // nil: documents wait in memory only
	log   *slog.Logger
	files files

	unsaved atomic.Bool // the latest changes could not be saved

	answerTime time.Duration // of a server
	names      *net.Resolver // of the names of servers; nil: that of the machine

	ctx  context.Context // of the queues' goroutines
	stop context.CancelFunc

	mu     sync.Mutex
	list   map[string]*queue // by key
	closed bool

	roomMu sync.Mutex
	bytes  map[int]int // by uid, of the texts that wait
	total  int         // of all
}

// The limits of the memory that waiting documents take, for one user and for all.
const (
	mostBytesOfUser = 32 << 20
	mostBytes       = 128 << 20
)

// perDocument is what a waiting document takes besides its text: records in the queue, and a copy in the journal.
const perDocument = 512

// room returns the memory that a document takes while it waits.
func room(text string) int { return 2*len(text) + perDocument }

// OpenQueues returns the queues that a former gateway left in the store, which deliver at
// once.
func OpenQueues(rules Rules, saved Store, log *slog.Logger) *Queues {
	if log == nil {
		log = slog.Default()
	}
	all := &Queues{rules: rules, saved: saved, log: log, list: make(map[string]*queue), answerTime: answerTime, bytes: make(map[int]int)}
	all.ctx, all.stop = context.WithCancel(context.Background())
	if saved != nil {
		all.resume()
	}
	return all
}

func (all *Queues) newQueue(r queueRecord) *queue {
	return &queue{all: all, key: r.key(), record: r, senders: make(map[string]*sender), wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// start adds a queue and starts its goroutine. The caller holds mu.
func (all *Queues) start(q *queue) {
	all.list[q.key] = q
	go q.run(all.ctx)
}

// To returns the destination of a probe at an address. Until that destination is closed and has
// delivered its documents, To returns the same one.
func (all *Queues) To(probe string, a Address, u User) (Destination, error) {
	r := queueRecord{URI: a.URI, User: u}
	if !a.local() {
		r.Probe = probe // a slow server delays the documents of one probe only
	}
	if s := all.join(r, probe); s != nil {
		return s, nil
	}
	opened, err := all.open(a.URI, u) // may take a while
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	if all.closed || all.list[r.key()] != nil {
		all.mu.Unlock()
		opened.close()
		if s := all.join(r, probe); s != nil {
			return s, nil
		}
		return nil, errors.New("the gateway is ending")
	}
	q := all.newQueue(r)
	q.sink = opened
	all.store(changes{q.recordKey(): r})
	s := q.sender(probe)
	all.start(q)
	all.mu.Unlock()
	q.commit()
	return s, nil
}

// join returns the sender of a probe to an existing queue; nil if there is no such queue.
func (all *Queues) join(r queueRecord, probe string) *sender {
	all.mu.Lock()
	q := all.list[r.key()]
	if q == nil {
		all.mu.Unlock()
		return nil
	}
	s := q.sender(probe)
	all.mu.Unlock()
	q.commit()
	return s
}

// sender returns the sender of a probe, open for documents. The next commit writes it.
func (q *queue) sender(probe string) *sender {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.senders[probe]
	if s == nil {
		s = &sender{queue: q, record: senderRecord{Probe: probe}, stored: true}
		q.senders[probe] = s
		q.touch(s)
	}
	if s.record.Closed {
		s.record.Closed = false
		q.touch(s)
	}
	return s
}

// Check returns an error for a destination that is not allowed to the user.
func (all *Queues) Check(a Address, u User) error {
	if !all.rules.Allow(a) {
		return fmt.Errorf("the gateway does not deliver to %s: its configuration allows %s (mirador serve --deliver)", a.URI, cmp.Or(strings.Join(all.rules, ", "), "nothing"))
	}
	if !a.local() {
		return nil
	}
	_, err := u.uid()
	return err
}

// Try reports whether documents of the user can be delivered to a destination now, as far as that
// can be known without sending a document. It creates a file that does not exist.
func (all *Queues) Try(a Address, u User) error {
	s, err := all.open(a.URI, u)
	if err == nil {
		s.close()
	}
	return err
}

// open returns the sink of a user for an address.
func (all *Queues) open(uri string, u User) (sink, error) {
	a, err := ParseAddress(uri)
	if err != nil {
		return nil, err
	}
	if err := all.Check(a, u); err != nil {
		return nil, err
	}
	switch a.url.Scheme {
	case "file":
		return all.files.open(a, u)
	case "unix":
		return connectSocket(a, u)
	}
	return newPost(a, all.answerTime, all.names), nil
}

// States describes the deliveries of a probe.
func (all *Queues) States(probe string) (states []State) {
	for _, q := range all.queues() {
		q.mu.Lock()
		s := q.senders[probe]
		q.mu.Unlock()
		if s != nil {
			states = append(states, s.state())
		}
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Destination, b.Destination) })
	return states
}

func (all *Queues) queues() []*queue {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Collect(maps.Values(all.list))
}

// Close delivers what waits. The rest stays in the store, for the next gateway: what waits for a
// destination that does not take it, and what is left after half of the time until the context ends,
// because the caller has more to release.
func (all *Queues) Close(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		half, cancel := context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
		ctx = half
	}
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	list := all.queues()
	for _, q := range list {
		for q.left() > 0 && (all.saved == nil || !q.fails()) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	all.stop()
	left := 0
	for _, q := range list {
		<-q.ended
		left += q.left()
	}
	if left > 0 && all.saved == nil {
		return fmt.Errorf("%d measurements could not be delivered", left)
	}
	return nil
}

// left returns the number of documents that wait.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + len(q.fresh)
}

// fails reports whether the destination did not take the next document.
func (q *queue) fails() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failure != nil
}

// forget removes a queue if it has no senders and no documents, and reports whether it did.
func (all *Queues) forget(q *queue) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.senders) > 0 || len(q.waiting) > 0 {
		return false
	}
	delete(all.list, q.key)
	all.store(changes{q.recordKey(): nil})
	return true
}

// reserve takes room for a text that waits. It reports false if there is none.
func (all *Queues) reserve(u User, n int) bool {
	all.roomMu.Lock()
	defer all.roomMu.Unlock()
	if all.total+n > mostBytes || all.bytes[u.UID]+n > mostBytesOfUser {
		return false
	}
	all.take(u, n)
	return true
}

func (all *Queues) release(u User, n int) {
	all.roomMu.Lock()
	defer all.roomMu.Unlock()
	all.take(u, -n)
}

func (all *Queues) take(u User, n int) {
	all.total += n
	if all.bytes[u.UID] += n; all.bytes[u.UID] == 0 {
		delete(all.bytes, u.UID)
	}
}

// store writes to the journal. If that fails, documents still wait in memory.
func (all *Queues) store(c changes) {
	if all.saved == nil || len(c) == 0 {
		return
	}
	for key, value := range c {
		if b, ok := value.(*batch); ok {
			c[key] = b.encode()
		}
	}
	err := all.saved.Update(c)
	switch before := all.unsaved.Swap(err != nil); {
	case err != nil && !before:
		all.log.Warn("if the gateway is killed now, measurements that wait will be lost, or delivered again", "error", err)
	case err == nil && before:
		all.log.Info("measurements that wait outlive the gateway again")
	}
}
