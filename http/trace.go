package gateway

import (
	"fmt"
	"net/http"
	"time"
)

// longestTrace limits the parameter "for" of a trace.
const longestTrace = 24 * time.Hour

// traceProbe sends the event trace of a probe in the format of Chrome's trace viewer, until the
// time of the request is over, the probe ends or the caller leaves.
func (h *probeHandlers) traceProbe(x *exchange) error {
	p, err := h.findProbe(x)
	if err != nil {
		return err
	}
	over, err := traceTime(x.r)
	if err != nil {
		return err
	}
	done, err := h.streams.take(x.caller)
	if err != nil {
		return err
	}
	defer done()
	batches, cancel, err := h.backend.Trace(p.ID)
	if err != nil {
		return err
	}
	defer cancel()
	control := http.NewResponseController(x)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	x.Header().Set("Content-Type", "application/json")
	x.Header().Set("Cache-Control", "no-store")
	x.Header().Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", p.ID+".json"))
	x.WriteHeader(http.StatusOK)
	if x.r.Method == http.MethodHead {
		return nil
	}
	w := newChrome(x)
	for {
		if control.Flush() != nil || w.err != nil {
			return nil // the caller is gone
		}
		select {
		case b, more := <-batches:
			if !more {
				return w.close()
			}
			if !h.touches(x.caller, p) { // a process has executed a set-user-ID program since
				return w.close()
			}
			w.batch(b)
		case <-over:
			return w.close()
		case <-x.r.Context().Done():
			return nil
		case <-h.streams.ending:
			return w.close()
		}
	}
}

// traceTime returns when a trace ends: after the duration in the parameter "for"; without it,
// never.
func traceTime(r *http.Request) (<-chan time.Time, error) {
	text := r.URL.Query().Get("for")
	if text == "" {
		return nil, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longestTrace {
		return nil, NewFault(http.StatusBadRequest, fmt.Sprintf("for=%q is no duration up to %s, such as 10s", text, longestTrace))
	}
	return time.After(d), nil
}
