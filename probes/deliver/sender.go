package deliver

import (
	"bytes"

	"mirador/mir"
	"mirador/mir/api"
)

// sender is the Destination of one probe: it numbers the documents of the probe and puts them
// into a queue. The queue's mu guards its fields.
type sender struct {
	queue  *queue
	record senderRecord
	stored bool // the journal has the record as it is

	delivered int64  // number of the newest document that left the queue
	waiting   int    // documents that did not leave it
	lost      int64  // since the gateway was started
	latest    *batch // in the journal, with the newest document; nil if there is none
}

// senderRecord is the journal's record of a sender. The numbers of documents whose batch is
// in the journal may be greater than Newest.
type senderRecord struct {
	Probe  string `json:"probe"`
	Newest int64  `json:"newest"`           // greatest number of a document
	Lost   int64  `json:"lost,omitempty"`   // documents lost since the last one that was queued
	Closed bool   `json:"closed,omitempty"` // no more documents will come
}

// mostWaiting limits the documents of a sender in a queue.
const mostWaiting = 1000

// Send implements Destination.
func (s *sender) Send(m mir.Document) {
	marshalled, err := mir.Marshal(m)
	text := string(bytes.TrimSpace(marshalled))
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.record.Newest++
	if err != nil || s.waiting >= mostWaiting || !q.all.reserve(q.record.User, room(text)) {
		s.lose(1)
		s.lost++
		return
	}
	q.fresh = append(q.fresh, item{Probe: s.record.Probe, Number: s.record.Newest, Lost: s.record.Lost, Text: text, from: s})
	s.waiting++
	if s.record.Lost > 0 {
		s.lose(-s.record.Lost)
	}
}

// lose changes the number of lost documents that the next one reports. The caller holds mu.
func (s *sender) lose(n int64) {
	s.record.Lost += n
	s.queue.touch(s)
}

// Commit implements Destination: it writes the documents to the journal.
func (s *sender) Commit() { s.queue.commit() }

// Close implements Destination: no more documents will come. Those that wait are still
// delivered.
func (s *sender) Close() {
	q := s.queue
	q.mu.Lock()
	s.record.Closed = true
	q.touch(s)
	q.mu.Unlock()
	q.commit()
}

// ended reports whether the sender has nothing to do any more. The caller holds mu.
func (s *sender) ended() bool { return s.record.Closed && s.waiting == 0 }

// State describes a delivery.
type State = api.Delivery

func (s *sender) state() State {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	state := State{Destination: q.record.URI, Delivered: s.delivered, Waiting: s.waiting, Lost: s.lost}
	if q.failure != nil && s.waiting > 0 {
		state.Failure = q.failure.Error()
	}
	return state
}
