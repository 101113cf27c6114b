package deliver

import (
	"slices"
	"sync"
	"time"

	"mirador/mir"
)

// Destination takes the documents of one probe out of the gateway. An Outlet makes one call at a time, under its
// lock, so both methods must return at once: a destination that writes to a disk or a network
// does so in a goroutine of its own, and drops documents that it has no room for.
type Destination interface {
	// Send takes a document, which the destination must not change.
	Send(mir.Document)
	// Commit makes sure that what was sent survives a SIGKILL of the gateway.
	Commit()
	// Close is the last call.
	Close()
}

// Outlet has the destinations of a probe and the readers of its stream. The zero value has
// none.
type Outlet struct {
	mu           sync.Mutex
	destinations []Destination
	streams      []*stream
	room         int       // see SetRoom; 0: backlog
	recent       []Event   // the latest documents, while streams are read
	first        uint64    // the ID of the first document; 0: there was none
	until        time.Time // when a broken stream is given up
	closed       bool
}

// Add adds a destination. It reports false, and does not add the destination, after Close.
func (o *Outlet) Add(d Destination) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.destinations = append(o.destinations, d)
	return true
}

// Remove closes a destination and removes it, unless it was closed before.
func (o *Outlet) Remove(d Destination) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.destinations, d); i >= 0 {
		o.destinations = slices.Delete(o.destinations, i, i+1)
		d.Close()
	}
}

// Listen opens a stream. A reader that had one before gives the ID of the last event it
// received, and gets what it missed. The channel is closed by cancel and by the end of the
// outlet. ok is false after Close.
func (o *Outlet) Listen(after uint64) (events <-chan Event, cancel func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, nil, false
	}
	s := &stream{events: make(chan Event, o.waiting())}
	o.streams = append(o.streams, s)
	switch {
	case after == 0:
	case o.first == 0 || after < o.first:
		// The reader received its last event before a restart of the gateway, or has been away for longer
		// than linger.
		s.missed = Unknown
	default:
		s.recall(o.recent, after)
	}
	return s.events, func() { o.leave(s) }, true
}

// SetRoom sets the number of documents that wait for a slow reader, for a probe that sends many
// at a time. It applies to streams that are opened later.
func (o *Outlet) SetRoom(documents int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room = documents
}

// waiting returns the number of documents that are kept for a slow reader, and for a reader that
// connects again.
func (o *Outlet) waiting() int { return max(o.room, backlog) }

// leave closes a stream. Its documents are kept for a while, in case the connection broke.
func (o *Outlet) leave(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.streams, s); i >= 0 {
		o.streams = slices.Delete(o.streams, i, i+1)
		close(s.events)
		o.until = time.Now().Add(linger)
	}
}

// HasReaders reports whether the stream has a reader now.
func (o *Outlet) HasReaders() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.streams) > 0
}

// Empty reports whether nothing takes documents, so that none is needed.
func (o *Outlet) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.destinations) == 0 && !o.isRead()
}

// isRead reports whether the stream has a reader, or had one a short time ago.
func (o *Outlet) isRead() bool {
	return len(o.streams) > 0 || time.Now().Before(o.until)
}

// Parcel is a document for the destinations and readers of an outlet.
type Parcel struct {
	To       *Outlet
	Document mir.Document
}

// Send sends documents to all destinations and readers of their outlets. It is cheaper for
// many documents than for one after the other.
func Send(parcels ...Parcel) {
	var all []Destination
	for _, p := range parcels {
		all = append(all, p.To.send(p.Document)...)
	}
	for _, d := range slices.Compact(all) {
		d.Commit()
	}
}

// send sends a document, and returns the destinations, which are to be committed.
func (o *Outlet) send(m mir.Document) []Destination {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.destinations {
		d.Send(m)
	}
	o.sendToReaders(m)
	return slices.Clone(o.destinations)
}

// sendToReaders sends a document to the streams. The caller holds mu.
func (o *Outlet) sendToReaders(m mir.Document) {
	if !o.isRead() {
		o.recent, o.first = nil, 0
		return
	}
	e := Event{ID: o.next(), Document: m}
	o.recent = append(o.recent, e)
	o.recent = o.recent[max(0, len(o.recent)-o.waiting()):]
	for _, s := range o.streams {
		s.send(e)
	}
}

// next returns the ID of a new document. The first one is the time, so that IDs ascend also
// from one gateway to the next.
func (o *Outlet) next() uint64 {
	if n := len(o.recent); n > 0 {
		return o.recent[n-1].ID + 1
	}
	o.first = uint64(time.Now().UnixMicro())
	return o.first
}

// End closes and removes the present destinations and streams. Others can be added later.
func (o *Outlet) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
}

// Close is End for good.
func (o *Outlet) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	o.closed = true
}

func (o *Outlet) end() {
	for _, d := range o.destinations {
		d.Close()
	}
	for _, s := range o.streams {
		close(s.events)
	}
	o.destinations, o.streams = nil, nil
}
