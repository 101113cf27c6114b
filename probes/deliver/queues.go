package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Store keeps the documents that wait. *journal.Journal is one.
type Store interface {
	Keys(prefix string) []string
	Get(key string, value any) (bool, error)
	Put(key string, value any) error
	Delete(key string) error
}

// Queues are the queues of a gateway to destinations outside of it. The methods may be called
// from any goroutine.
type Queues struct {
	rules Rules
	saved Store // nil: documents wait in memory only
	log   *slog.Logger
	files files
	ctx   context.Context // of the queues' goroutines
	stop  context.CancelFunc

	mu     sync.Mutex
	list   map[string]*queue // by the key of the record
	closed bool

	roomMu sync.Mutex
	bytes  map[int]int // by uid, of the texts that wait
}

// The limits of the texts that wait, for one user and for all.
const (
	mostBytesOfUser = 16 << 20
	mostBytes       = 64 << 20
)

// Keys of the journal.
const (
	recordPrefix = "delivery/"
	itemPrefix   = "document/"
)

// OpenQueues returns the queues that a former gateway left in the store, which deliver at
// once.
func OpenQueues(rules Rules, saved Store, log *slog.Logger) *Queues {
	if log == nil {
		log = slog.Default()
	}
	all := &Queues{rules: rules, saved: saved, log: log, list: make(map[string]*queue), bytes: make(map[int]int)}
	all.ctx, all.stop = context.WithCancel(context.Background())
	if saved == nil {
		return all
	}
	for _, key := range saved.Keys(recordPrefix) {
		var r record
		if ok, err := saved.Get(key, &r); !ok || err != nil || recordKey(r) != key {
			log.Warn("cannot read what a former gateway had to deliver", "key", key, "error", err)
			continue
		}
		all.resume(r)
	}
	return all
}

// resume starts the queue of a record with the documents that wait.
func (all *Queues) resume(r record) {
	q := all.newQueue(r)
	for _, key := range all.saved.Keys(itemsOf(r)) {
		var i item
		if ok, err := all.saved.Get(key, &i); !ok || err != nil || itemKey(r, i.Number) != key {
			all.log.Warn("a measurement of a former gateway is lost", "key", key, "error", err)
			continue
		}
		if i.Number <= r.Delivered { // the gateway was killed before it erased the document
			all.erase(key)
			continue
		}
		all.reserve(r.User, len(i.Text))
		q.waiting = append(q.waiting, i)
		q.record.Newest = max(q.record.Newest, i.Number)
	}
	slices.SortFunc(q.waiting, func(a, b item) int { return cmp.Compare(a.Number, b.Number) })
	all.list[recordKey(r)] = q
	go q.run(all.ctx)
}

func (all *Queues) newQueue(r record) *queue {
	return &queue{all: all, record: r, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// To returns the queue of a probe to a destination. It returns the same one, with its
// documents, until that is closed and empty.
func (all *Queues) To(probe string, a Address, u User) (Destination, error) {
	r := record{Probe: probe, URI: a.URI, User: u}
	if q := all.find(r); q != nil {
		return q, nil
	}
	s, err := all.open(r) // may take a while
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || all.list[recordKey(r)] != nil {
		s.close()
		return nil, errors.New("the gateway is ending, or another request delivers there just now")
	}
	q := all.newQueue(r)
	q.sink = s
	all.store(recordKey(r), r)
	all.list[recordKey(r)] = q
	go q.run(all.ctx)
	return q, nil
}

// find returns the queue with a record, open for documents; nil if there is none.
func (all *Queues) find(r record) *queue {
	all.mu.Lock()
	defer all.mu.Unlock()
	q := all.list[recordKey(r)]
	if q != nil {
		q.setClosed(false)
	}
	return q
}

// Check returns an error for a destination that is not allowed to the user.
func (all *Queues) Check(a Address, u User) error {
	if !all.rules.Allow(a) {
		return fmt.Errorf("the gateway does not deliver to %s: its configuration allows %s (mirador serve --deliver)", a.URI, cmp.Or(strings.Join(all.rules, ", "), "nothing"))
	}
	if a.url.Scheme != "file" {
		return nil
	}
	_, err := u.uid()
	return err
}

// Try reports whether documents of the user can be delivered to a destination now, as far as
// that can be known without one. It creates a file that does not exist.
func (all *Queues) Try(a Address, u User) error {
	s, err := all.open(record{URI: a.URI, User: u})
	if err == nil {
		s.close()
	}
	return err
}

// open returns the sink of a record.
func (all *Queues) open(r record) (sink, error) {
	a, err := ParseAddress(r.URI)
	if err != nil {
		return nil, err
	}
	if err := all.Check(a, r.User); err != nil {
		return nil, err
	}
	if a.url.Scheme == "file" {
		return all.files.open(a, r.User)
	}
	return newPost(a), nil
}

// States describes the deliveries of a probe.
func (all *Queues) States(probe string) (states []State) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, q := range all.list {
		if q.record.Probe == probe {
			states = append(states, q.state())
		}
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Destination, b.Destination) })
	return states
}

// Close delivers what waits until the context ends. The rest stays in the store, for the next
// gateway.
func (all *Queues) Close(ctx context.Context) error {
	all.mu.Lock()
	all.closed = true
	var list []*queue
	for _, q := range all.list {
		list = append(list, q)
	}
	all.mu.Unlock()
	for _, q := range list {
		for q.state().Waiting > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	all.stop()
	left := 0
	for _, q := range list {
		<-q.ended
		left += q.state().Waiting
	}
	if left > 0 && all.saved == nil {
		return fmt.Errorf("%d measurements could not be delivered", left)
	}
	return nil
}

// forget removes a queue that is closed and empty. It reports false for another one.
func (all *Queues) forget(q *queue) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.record.Closed || len(q.waiting) > 0 {
		return false
	}
	delete(all.list, recordKey(q.record))
	all.erase(recordKey(q.record))
	return true
}

// reserve takes room for a text that waits. It reports false if there is none.
func (all *Queues) reserve(u User, n int) bool {
	all.roomMu.Lock()
	defer all.roomMu.Unlock()
	total := n
	for _, bytes := range all.bytes {
		total += bytes
	}
	if total > mostBytes || all.bytes[u.UID]+n > mostBytesOfUser {
		return false
	}
	all.bytes[u.UID] += n
	return true
}

func (all *Queues) release(u User, n int) {
	all.roomMu.Lock()
	defer all.roomMu.Unlock()
	if all.bytes[u.UID] -= n; all.bytes[u.UID] == 0 {
		delete(all.bytes, u.UID)
	}
}

// store writes to the journal. If that fails, the document still waits in memory.
func (all *Queues) store(key string, value any) {
	if all.saved == nil {
		return
	}
	if err := all.saved.Put(key, value); err != nil {
		all.log.Debug("a measurement that waits will be lost if the gateway is killed", "key", key, "error", err)
	}
}

func (all *Queues) erase(key string) {
	if all.saved == nil {
		return
	}
	if err := all.saved.Delete(key); err != nil {
		all.log.Debug("a measurement may be delivered again if the gateway is killed", "key", key, "error", err)
	}
}

// recordKey, itemsOf and itemKey return keys of the journal. A probe may have had several
// destinations.
func recordKey(r record) string { return recordPrefix + name(r) }
func itemsOf(r record) string   { return itemPrefix + name(r) + "/" }

func itemKey(r record, number int64) string { return fmt.Sprintf("%s%d", itemsOf(r), number) }

func name(r record) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %t", r.URI, r.User.UID, r.User.Trusted)
	return fmt.Sprintf("%s/%016x", r.Probe, h.Sum64())
}
