package deliver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// Keys of the journal. A queue has a record, one for each sender, and one for each batch.
const (
	queuePrefix  = "queue/"
	senderPrefix = "sender/"
	batchPrefix  = "batch/"
)

// key names a queue in the journal.
func (r queueRecord) key() string {
	h := fnv.New128a()
	fmt.Fprintf(h, "%q %d %t %s", r.URI, r.User.UID, r.User.Trusted, r.Probe)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (q *queue) recordKey() string          { return queuePrefix + q.key }
func (q *queue) senderKey(s *sender) string { return senderPrefix + q.key + "/" + s.record.Probe }
func (q *queue) batchKey(b *batch) string   { return fmt.Sprintf("%s%s/%d", batchPrefix, q.key, b.First) }

// encode returns the batch as JSON that contains the documents as they are.
func (b *batch) encode() json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil { // it has only strings and numbers
		panic(err)
	}
	return bytes.TrimSpace(text.Bytes())
}

// resume starts the queues of a former gateway.
func (all *Queues) resume() {
	for _, key := range all.saved.Keys(queuePrefix) {
		var r queueRecord
		if all.read(key, &r) && queuePrefix+r.key() == key {
			q := all.newQueue(r)
			q.resume()
			all.mu.Lock()
			all.start(q)
			all.mu.Unlock()
		}
	}
}

// read reads a value of the journal.
func (all *Queues) read(key string, value any) bool {
	ok, err := all.saved.Get(key, value)
	if !ok || err != nil {
		all.log.Warn("cannot read what a former gateway had to deliver", "key", key, "error", err)
	}
	return ok && err == nil
}

// resume reads the senders and the documents of a queue.
func (q *queue) resume() {
	for _, key := range q.all.saved.Keys(senderPrefix + q.key + "/") {
		var r senderRecord
		if q.all.read(key, &r) {
			q.senders[r.Probe] = &sender{queue: q, record: r, stored: true, delivered: r.Newest}
		}
	}
	for _, key := range q.all.saved.Keys(batchPrefix + q.key + "/") {
		b := new(batch)
		if q.all.read(key, b) && key == q.batchKey(b) {
			q.batches = append(q.batches, b)
		}
	}
	slices.SortFunc(q.batches, func(a, b *batch) int { return cmp.Compare(a.First, b.First) })
	q.newest = q.record.Delivered
	for _, b := range q.batches {
		q.recall(b)
	}
	changes := make(changes)
	for _, s := range q.senders {
		if s.ended() {
			q.dismiss(s, changes)
		}
	}
	q.prune(changes)
	q.all.store(changes)
}

// recall queues the documents of a batch that were not delivered, and finds out the numbers
// of their senders.
func (q *queue) recall(b *batch) {
	q.newest = max(q.newest, b.last())
	for at, i := range b.Items {
		s := q.senders[i.Probe]
		waits := b.First+int64(at) > q.record.Delivered
		if s == nil && !waits {
			continue // the probe was removed
		}
		if s == nil {
			s = &sender{queue: q, record: senderRecord{Probe: i.Probe, Closed: true}, stored: true}
			q.senders[i.Probe] = s
		}
		if s.latest != b {
			q.leave(s)
			s.latest = b
			b.senders++
		}
		s.record.Newest = max(s.record.Newest, i.Number)
		i.from = s
		if !waits {
			s.delivered = i.Number
			continue
		}
		if s.waiting == 0 {
			s.delivered = min(s.delivered, i.Number-1)
		}
		s.waiting++
		q.all.release(q.record.User, -room(i.Text))
		q.waiting = append(q.waiting, i)
	}
}
