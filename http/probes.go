package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"

	"mirador/mir"
	"mirador/probes/deliver"
)

// probeHandlers answer requests for probes and their measurements.
type probeHandlers struct {
	*access
	backend Backend
	streams *streams
}

func (h *probeHandlers) listProbes(x *exchange) error {
	return sendJSON(x, http.StatusOK, h.visibleProbes(x.caller))
}

// visibleProbes lists the probes of the applications that the caller may touch.
func (h *probeHandlers) visibleProbes(c *Caller) []Probe {
	probes := []Probe{}
	apps := h.namesOfTouchable(c)
	for _, p := range h.backend.Probes() {
		if c.All || apps[p.App] {
			probes = append(probes, p)
		}
	}
	return probes
}

func (h *probeHandlers) findProbe(x *exchange) (Probe, error) {
	id := x.param("id")
	p, ok := h.backend.Probe(id)
	if !ok {
		return Probe{}, NewFault(http.StatusNotFound, fmt.Sprintf("there is no probe %q; GET /probes lists them", id))
	}
	if !x.caller.All && !h.namesOfTouchable(x.caller)[p.App] {
		return Probe{}, NewFault(http.StatusForbidden, fmt.Sprintf("probe %s belongs to another user's application", id))
	}
	return p, nil
}

func (h *probeHandlers) getProbe(x *exchange) error {
	p, err := h.findProbe(x)
	if err != nil {
		return err
	}
	return sendJSON(x, http.StatusOK, p)
}

func (h *probeHandlers) streamProbe(x *exchange) error {
	p, err := h.findProbe(x)
	if err != nil {
		return err
	}
	done, err := h.streams.take(x.caller)
	if err != nil {
		return err
	}
	defer done()
	after, err := lastEvent(x.r)
	if err != nil {
		return err
	}
	documents, cancel, err := h.backend.Subscribe(p.ID, after)
	if err != nil {
		return err
	}
	defer cancel()
	return streamEvents(h.streams.ending, x, events[deliver.Event]{
		name: "measurement", source: documents,
		id:   func(e deliver.Event) uint64 { return e.ID },
		lost: func(e deliver.Event) int { return e.Lost },
		print: func(out *bytes.Buffer, e deliver.Event) error {
			if err := h.stillTouches(x, p); err != nil {
				return err
			}
			return mir.Encode(out, e.Document)
		},
	})
}

// touches reports whether a caller may observe the application of a probe.
func (h *probeHandlers) touches(who *Caller, p Probe) bool {
	if who.All {
		return true
	}
	apps := h.backend.Apps()
	i := slices.IndexFunc(apps, func(a App) bool { return a.Name == p.App })
	return i < 0 || h.mayTouch(who, &apps[i]) // measurements of a released application are older than its release
}

// stillTouches returns an error if the caller may no longer observe the application, because
// one of its processes has executed a set-user-ID program since the stream began. It also
// writes an event with the reason, which is the last one of the stream.
func (h *probeHandlers) stillTouches(x *exchange, p Probe) error {
	if h.touches(x.caller, p) {
		return nil
	}
	const why = "a process of the application belongs to another user now; the stream ends here"
	io.WriteString(x, "event: refused\ndata: "+why+"\n\n")
	http.NewResponseController(x).Flush() // an error means that the caller is gone
	return NewFault(http.StatusForbidden, why)
}
