package gateway

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// keepAlive is the interval of comments on a stream without events: proxies close connections
// that are silent for a minute.
const keepAlive = 20 * time.Second

// events are the events of a stream.
type events[T any] struct {
	name   string
	source <-chan T
	id     func(T) uint64
	lost   func(T) int // events missed before this one, below 0 if the number is not known; nil: always 0
	print  func(*bytes.Buffer, T) error
}

// streamEvents sends server-sent events until the source, the caller or the gateway ends. An
// event "lost" says how many events the reader has missed.
func streamEvents[T any](ending <-chan struct{}, x *exchange, e events[T]) error {
	control := http.NewResponseController(x)
	// A stream outlives the deadline of its request.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusOK)
	if x.r.Method == http.MethodHead {
		return nil
	}
	if err := control.Flush(); err != nil {
		return nil // the caller is gone
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	var out bytes.Buffer
	for {
		out.Reset()
		select {
		case item, more := <-e.source:
			if !more {
				return nil
			}
			if err := e.frame(&out, item); err != nil {
				return err
			}
		case <-tick.C:
			out.WriteString(": still here\n\n")
		case <-x.r.Context().Done():
			return nil
		case <-ending:
			return nil
		}
		if _, err := x.Write(out.Bytes()); err != nil || control.Flush() != nil {
			return nil
		}
	}
}

// mostTogether is about the number of bytes that are sent at once.
const mostTogether = 64 << 10

// frame writes an event, and others that wait already. The next call finds out that the source
// has ended.
func (e *events[T]) frame(out *bytes.Buffer, item T) error {
	var text bytes.Buffer
	for more := true; more; {
		text.Reset()
		if err := e.print(&text, item); err != nil {
			return err
		}
		if e.lost != nil {
			frameLoss(out, e.lost(item))
		}
		frameEvent(out, e.name, e.id(item), text.Bytes())
		if out.Len() >= mostTogether {
			return nil
		}
		select {
		case item, more = <-e.source:
		default:
			more = false
		}
	}
	return nil
}

// frameLoss writes the event for events that were missed. It has no id: a reader that
// connects again wants what follows the last measurement.
func frameLoss(out *bytes.Buffer, n int) {
	switch {
	case n > 0:
		fmt.Fprintf(out, "event: lost\ndata: %d\n\n", n)
	case n < 0:
		out.WriteString("event: lost\ndata: unknown\n\n")
	}
}

// frameEvent writes one event; each line of the text is a line of data.
func frameEvent(out *bytes.Buffer, event string, id uint64, text []byte) {
	out.WriteString("event: " + event + "\nid: " + strconv.FormatUint(id, 10) + "\n")
	for line := range bytes.Lines(text) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
}
