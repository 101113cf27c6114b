package deliver

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"mirador/mir"
	"mirador/mir/api"
)

// sink takes documents out of the gateway. One goroutine at a time uses it.
type sink interface {
	// write returns nil when the destination has the document, *refused if it will never
	// take it, and another error if it may take it later.
	write(context.Context, item) error
	close()
}

// item is a document in a queue.
type item struct {
	Probe  string `json:"probe"`
	Number int64  `json:"number"`         // from 1, in the order of the documents
	Lost   int64  `json:"lost,omitempty"` // documents between the one before and this one that were lost
	Text   string `json:"text"`
}

// queue is a Destination that delivers documents at least once, in their order. They wait
// in the journal, so that neither an absent destination nor a SIGKILL of the gateway loses
// one while there is room. Its goroutine writes to the sink.
type queue struct {
	all   *Queues
	sink  sink          // of the goroutine; nil until it is open
	wake  chan struct{} // has room for one
	ended chan struct{}

	mu      sync.Mutex
	record  record
	waiting []item
	total   int64 // documents lost
	failure error // why the first one in waiting is not delivered yet
}

// record is the journal's record of a queue.
type record struct {
	Probe     string `json:"probe"`
	URI       string `json:"uri"`
	User      User   `json:"user"`
	Newest    int64  `json:"newest"`           // greatest number of a document when the record was last written
	Delivered int64  `json:"delivered"`        // greatest number of a document that left the queue
	Lost      int64  `json:"lost,omitempty"`   // documents lost since the last one that was queued
	Closed    bool   `json:"closed,omitempty"` // no more documents will come
}

// mostWaiting limits the documents in a queue.
const mostWaiting = 1000

// Send implements Destination. It writes the document to the journal.
func (q *queue) Send(m mir.Document) {
	text, err := mir.Marshal(m)
	text = bytes.TrimSpace(text)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.record.Newest++
	if err != nil || len(q.waiting) >= mostWaiting || !q.all.reserve(q.record.User, len(text)) {
		q.record.Lost++
		q.total++
		q.all.store(recordKey(q.record), q.record)
		return
	}
	i := item{Probe: q.record.Probe, Number: q.record.Newest, Lost: q.record.Lost, Text: string(text)}
	q.waiting = append(q.waiting, i)
	q.all.store(itemKey(q.record, i.Number), i)
	if q.record.Lost > 0 {
		q.record.Lost = 0
		q.all.store(recordKey(q.record), q.record)
	}
	q.rouse()
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close implements Destination: no more documents will come. Those that wait are still
// delivered.
func (q *queue) Close() { q.setClosed(true) }

func (q *queue) setClosed(closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.record.Closed != closed {
		q.record.Closed = closed
		q.all.store(recordKey(q.record), q.record)
		q.rouse()
	}
}

// run delivers until the queue is closed and empty, or the context ends.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	defer func() {
		if q.sink != nil {
			q.sink.close()
		}
	}()
	wait := shortestPause
	for ctx.Err() == nil {
		i, ok := q.first()
		if !ok {
			if q.all.forget(q) {
				return
			}
			select {
			case <-ctx.Done():
			case <-q.wake:
			}
			continue
		}
		err := q.write(ctx, i)
		if err != nil && ctx.Err() != nil {
			return
		}
		if q.report(i, err) {
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

// jitter keeps the queues of many probes from trying at the same time.
func jitter(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5) }

func (q *queue) first() (i item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return i, false
	}
	return q.waiting[0], true
}

// write delivers a document. After a restart of the gateway it opens the sink first.
func (q *queue) write(ctx context.Context, i item) (err error) {
	if q.sink == nil {
		q.mu.Lock()
		r := q.record
		q.mu.Unlock()
		if q.sink, err = q.all.open(r); err != nil {
			q.sink = nil
			return err
		}
	}
	return q.sink.write(ctx, i)
}

// report records the result of an attempt. done means that the document leaves the queue.
func (q *queue) report(i item, err error) (done bool) {
	log := q.all.log.With("probe", i.Probe, "destination", q.record.URI)
	q.mu.Lock()
	defer q.mu.Unlock()
	var no *refused
	if !errors.As(err, &no) && err != nil {
		if q.failure == nil {
			log.Warn("measurements cannot be delivered, and wait", "error", err)
		}
		q.failure = err
		return false
	}
	q.waiting = q.waiting[1:]
	q.record.Delivered = i.Number
	switch {
	case no != nil:
		log.Warn("the destination refused a measurement, which is lost", "number", i.Number, "error", err)
		q.total++
		if len(q.waiting) > 0 {
			q.waiting[0].Lost += i.Lost + 1
		} else {
			q.record.Lost += i.Lost + 1
		}
	case q.failure != nil:
		log.Info("measurements are delivered again")
	}
	q.failure = nil
	q.all.release(q.record.User, len(i.Text))
	// In this order, a SIGKILL in between at most delivers the document twice, with the same number.
	q.all.store(recordKey(q.record), q.record)
	q.all.erase(itemKey(q.record, i.Number))
	return true
}

// State describes a delivery.
type State = api.Delivery

func (q *queue) state() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := State{Destination: q.record.URI, Delivered: q.record.Delivered, Waiting: len(q.waiting), Lost: q.total}
	if q.failure != nil {
		s.Failure = q.failure.Error()
	}
	return s
}
