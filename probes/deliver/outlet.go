package deliver

import (
	"slices"
	"sync"

	"mirador/mir"
)

// Destination takes the documents of one probe. An Outlet makes one call at a time, under its
// lock, so both methods must return at once: a destination that writes to a disk or a network
// does so in a goroutine of its own, and drops documents that it has no room for.
type Destination interface {
	// Send takes a document, which the destination must not change.
	Send(*mir.Measurement)
	// Close is the last call.
	Close()
}

// Outlet has the destinations of a probe. The zero value has none.
type Outlet struct {
	mu           sync.Mutex
	destinations []Destination
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

// Empty reports whether there is no destination, so that no document is needed.
func (o *Outlet) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.destinations) == 0
}

// Send sends a document to all destinations.
func (o *Outlet) Send(m *mir.Measurement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.destinations {
		d.Send(m)
	}
}

// End closes and removes the present destinations. Others can be added later.
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
	o.destinations = nil
}
