package gateway

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// keepAlive is how often a silent stream says that it lives; proxies close what
// is silent for a minute.
const keepAlive = 20 * time.Second

// streamEvents sends server-sent events until the source, the caller or the
// gateway ends. number gives an event's id; nil numbers them from 1 on.
func streamEvents[T any](s *Server, x *exchange, event string, source <-chan T, number func(T) uint64, print func(*bytes.Buffer, T) error) error {
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
	var text, out bytes.Buffer
	for n := uint64(0); ; {
		out.Reset()
		select {
		case item, more := <-source:
			if !more {
				return nil
			}
			text.Reset()
			if err := print(&text, item); err != nil {
				return err
			}
			n++
			if number != nil {
				n = number(item)
			}
			frameEvent(&out, event, n, text.Bytes())
		case <-tick.C:
			out.WriteString(": still here\n\n")
		case <-x.r.Context().Done():
			return nil
		case <-s.ending:
			return nil
		}
		if _, err := x.Write(out.Bytes()); err != nil || control.Flush() != nil {
			return nil
		}
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
