package mir

import "strconv"

// Occurrence says what a delivered document is about, if it is about one execution of a region
// or one event. Its attributes are in the gateway's namespace, in the root element.
type Occurrence struct {
	// Event is what happened, for a probe with an event element: enter, leave, happen;
	// abandon, if an exception has left the region; cut, if it is not known because records
	// are lost; unmatched, if the record of the entry does not exist. "" for other probes.
	Event string
	Time  string // of the event, in seconds of the node's monotonic clock; "" without Event
	// Thread is the thread of the event; "" without Event.
	Thread string
	// Goroutine is the address of the descriptor of the goroutine that executes a function in Go, else "". It
	// may leave the function in another thread than it entered it.
	Goroutine string
	// Lost is the number of records lost before this document, UnknownLoss if it is not
	// known.
	Lost int64
}

// UnknownLoss is the value of Occurrence.Lost after a restart of the gateway.
const UnknownLoss = -1

// unknownLoss is UnknownLoss in a document.
const unknownLoss = "unknown"

// occurrence writes the attributes. The namespace is already declared.
func (w *writer) occurrence(o *Occurrence) {
	if o == nil {
		return
	}
	w.optional("gateway:event", o.Event)
	w.optional("gateway:time", o.Time)
	w.optional("gateway:thread", o.Thread)
	w.optional("gateway:goroutine", o.Goroutine)
	switch {
	case o.Lost > 0:
		w.attribute("gateway:lost", strconv.FormatInt(o.Lost, 10))
	case o.Lost < 0:
		w.attribute("gateway:lost", unknownLoss)
	}
}

// occurrence reads the attributes, nil if there are none.
func (f *findings) occurrence(e Element) *Occurrence {
	event, happened := ours(e, "event")
	at, _ := ours(e, "time")
	thread, _ := ours(e, "thread")
	goroutine, _ := ours(e, "goroutine")
	lost, some := ours(e, "lost")
	if !happened && !some {
		return nil
	}
	o := &Occurrence{Event: event.Value, Time: f.ourDecimal(at), Thread: thread.Value, Goroutine: goroutine.Value}
	if lost.Value == unknownLoss {
		o.Lost = UnknownLoss
	} else {
		o.Lost = f.whole(e, "lost")
	}
	return o
}
