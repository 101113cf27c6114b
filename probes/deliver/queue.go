package deliver

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// sink takes documents out of the gateway. One goroutine at a time uses it.
type sink interface {
	// write delivers some of the documents, from the first one on, and returns their number.
	// The error is about the next one: *refused if the destination will never take it, and
	// another error if it may take it later.
	write(context.Context, []item) (int, error)
	close()
}

// item is a document in a queue.
type item struct {
	Probe  string `json:"probe"`
	Number int64  `json:"number"`         // from 1, in the order of the probe's documents
	Lost   int64  `json:"lost,omitempty"` // documents between the one before and this one that were lost
	Text   string `json:"text"`

	from *sender
}

// batch has documents that were queued together. It stays in the journal until they are delivered and
// each of their senders has a newer batch: the next gateway finds the number of a sender's newest
// document in the sender's latest batch.
type batch struct {
	First   int64  `json:"first"` // position of the first document in the queue
	Items   []item `json:"items"`
	senders int    // whose latest batch it is
}

func (b *batch) last() int64 { return b.First + int64(len(b.Items)) - 1 }

// queue delivers the documents of some probes to one destination at least once, in their
// order. They wait in the journal, so that neither an absent destination nor a SIGKILL of the
// gateway loses one while there is room. Its goroutine writes to the sink.
type queue struct {
	all   *Queues
	key   string
	sink  sink          // of the goroutine; nil until it is open
	wake  chan struct{} // has room for one
	ended chan struct{}

	journal sync.Mutex // held while changes are written to the journal, before mu

	mu      sync.Mutex
	record  queueRecord
	newest  int64 // position of the newest document
	senders map[string]*sender
	touched []*sender // whose records are to be written
	fresh   []item    // not in the journal yet
	waiting []item    // from the position after record.Delivered on
	batches []*batch  // in the journal
	failure error     // why the first one in waiting is not delivered yet
}

// queueRecord is the journal's record of a queue.
type queueRecord struct {
	URI       string `json:"uri"`
	User      User   `json:"user"`
	Probe     string `json:"probe,omitempty"` // the only one; "": any
	Delivered int64  `json:"delivered"`       // position of the newest document that left the queue
}

// touch marks the sender's record, so that the next commit writes it. The caller holds mu.
func (q *queue) touch(s *sender) {
	if s.stored {
		s.stored = false
		q.touched = append(q.touched, s)
	}
}

// commit writes what was sent to the journal, in one batch, and queues it. A document that
// was not committed when the gateway is killed has no number yet.
func (q *queue) commit() {
	q.journal.Lock()
	defer q.journal.Unlock()
	q.mu.Lock()
	changes := make(changes)
	fresh := q.fresh
	if q.fresh = nil; len(fresh) > 0 {
		q.append(&batch{First: q.newest + 1, Items: fresh}, changes)
	}
	for _, s := range q.touched {
		if s.stored = true; s.ended() {
			q.dismiss(s, changes)
		} else {
			changes[q.senderKey(s)] = s.record
		}
	}
	idle := len(q.senders) == 0
	q.touched = nil
	q.mu.Unlock()
	q.all.store(changes)
	if len(fresh) > 0 || idle {
		q.mu.Lock()
		q.waiting = append(q.waiting, fresh...)
		q.mu.Unlock()
		q.rouse()
	}
}

// append adds a batch to those in the journal. The caller holds mu.
func (q *queue) append(b *batch, changes changes) {
	q.newest = b.last()
	for _, i := range b.Items {
		if i.from.latest != b {
			q.leave(i.from)
			i.from.latest = b
			b.senders++
		}
	}
	q.batches = append(q.batches, b)
	changes[q.batchKey(b)] = b
	q.prune(changes)
}

// leave takes a sender off its latest batch.
func (q *queue) leave(s *sender) {
	if s.latest != nil {
		s.latest.senders--
		s.latest = nil
	}
}

// prune removes batches from the journal that are not needed any more. The caller holds mu.
func (q *queue) prune(changes changes) {
	kept := q.batches[:0]
	for _, b := range q.batches {
		if b.senders > 0 || b.last() > q.record.Delivered {
			kept = append(kept, b)
		} else {
			changes[q.batchKey(b)] = nil
		}
	}
	clear(q.batches[len(kept):])
	q.batches = kept
}

// dismiss removes a sender that has ended. The caller holds mu.
func (q *queue) dismiss(s *sender, changes changes) {
	if q.senders[s.record.Probe] == s {
		delete(q.senders, s.record.Probe)
		changes[q.senderKey(s)] = nil
		q.leave(s)
		q.prune(changes)
	}
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run delivers until all senders have ended, or the context ends.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	defer func() {
		if q.sink != nil {
			q.sink.close()
		}
	}()
	wait := shortestPause
	for ctx.Err() == nil {
		items := q.next()
		if len(items) == 0 {
			if q.all.forget(q) {
				return
			}
			select {
			case <-ctx.Done():
			case <-q.wake:
			}
			continue
		}
		n, err := q.write(ctx, items)
		if n == 0 && err != nil && ctx.Err() != nil {
			return
		}
		if q.report(items, n, err) {
			wait = shortestPause
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(jitter(wait)):
		}
		wait = min(2*wait, longestPause)
	}
}

// The pauses between attempts, before jitter.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 30 * time.Second
)

// jitter keeps several queues from trying at the same time.
func jitter(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5) }

// next returns the documents that wait.
func (q *queue) next() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// write delivers documents. After a restart of the gateway it opens the sink first.
func (q *queue) write(ctx context.Context, items []item) (n int, err error) {
	if q.sink == nil {
		if q.sink, err = q.all.open(q.record.URI, q.record.User); err != nil {
			q.sink = nil
			return 0, err
		}
	}
	return q.sink.write(ctx, items)
}

// report records the result of an attempt: n documents are delivered, and an error concerns the next one.
// progress means that documents left the queue.
func (q *queue) report(items []item, n int, err error) (progress bool) {
	q.journal.Lock()
	defer q.journal.Unlock()
	changes := make(changes)
	log := q.all.log.With("destination", q.record.URI)
	q.mu.Lock()
	for i := range n {
		q.leaves(&items[i], changes)
	}
	if n > 0 && q.failure != nil {
		log.Info("measurements are delivered again")
		q.failure = nil
	}
	if no := new(refused); errors.As(err, &no) {
		q.failure = nil
		q.refuse(&items[n], err, log, changes)
		n++
	} else if err != nil {
		if q.failure == nil {
			log.Warn("measurements cannot be delivered, and wait", "probe", items[n].Probe, "error", err)
		}
		q.failure = err
	}
	if n > 0 {
		q.waiting = q.waiting[n:]
		q.record.Delivered += int64(n)
		q.prune(changes)
		// In this order, a SIGKILL in between at most delivers the documents again, with the same numbers.
		changes[q.recordKey()] = q.record
	}
	q.mu.Unlock()
	q.all.store(changes)
	return n > 0
}

// leaves records that a document has left the queue. The caller holds mu.
func (q *queue) leaves(i *item, changes changes) {
	s := i.from
	s.waiting--
	s.delivered = i.Number
	q.all.release(q.record.User, room(i.Text))
	if s.ended() {
		q.dismiss(s, changes)
	}
}

// refuse records that the destination refused a document; the next one of the probe reports
// the loss. The caller holds mu.
func (q *queue) refuse(i *item, err error, log *slog.Logger, changes changes) {
	log.Warn("the destination refused a measurement, which is lost", "probe", i.Probe, "number", i.Number, "error", err)
	s := i.from
	s.lost++
	if next := q.nextOf(s, i.Number); next != nil {
		next.Lost += i.Lost + 1
	} else {
		s.record.Lost += i.Lost + 1
		changes[q.senderKey(s)] = s.record
	}
	q.leaves(i, changes)
}

// nextOf returns the document of a sender after the one with a number, nil if there is none.
func (q *queue) nextOf(s *sender, number int64) *item {
	for _, list := range [][]item{q.waiting, q.fresh} {
		for i := range list {
			if list[i].from == s && list[i].Number > number {
				return &list[i]
			}
		}
	}
	return nil
}
