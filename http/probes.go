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

func (s *Server) listProbes(x *exchange) error {
	return sendJSON(x, http.StatusOK, s.visibleProbes(x.caller))
}

// visibleProbes are those of the applications that the caller may touch.
func (s *Server) visibleProbes(c *Caller) []Probe {
	probes := []Probe{}
	apps := s.namesOfTouchable(c)
	for _, p := range s.backend.Probes() {
		if c.All || apps[p.App] {
			probes = append(probes, p)
		}
	}
	return probes
}

// namesOfTouchable is the set of the applications that the caller may touch.
func (s *Server) namesOfTouchable(c *Caller) map[string]bool {
	names := map[string]bool{}
	for _, app := range s.touchable(c) {
		names[app.Name] = true
	}
	return names
}

func (s *Server) findProbe(x *exchange) (Probe, error) {
	id := x.param("id")
	p, ok := s.backend.Probe(id)
	if !ok {
		return Probe{}, NewFault(http.StatusNotFound, fmt.Sprintf("there is no probe %q; GET /probes lists them", id))
	}
	if !x.caller.All && !s.namesOfTouchable(x.caller)[p.App] {
		return Probe{}, NewFault(http.StatusForbidden, fmt.Sprintf("probe %s stands in another user's application", id))
	}
	return p, nil
}

func (s *Server) getProbe(x *exchange) error {
	p, err := s.findProbe(x)
	if err != nil {
		return err
	}
	return sendJSON(x, http.StatusOK, p)
}

func (s *Server) streamProbe(x *exchange) error {
	p, err := s.findProbe(x)
	if err != nil {
		return err
	}
	done, err := s.streams.take(x.caller, s.cfg.Limits)
	if err != nil {
		return err
	}
	defer done()
	after, err := lastEvent(x.r)
	if err != nil {
		return err
	}
	documents, cancel, err := s.backend.Subscribe(p.ID, after)
	if err != nil {
		return err
	}
	defer cancel()
	return streamEvents(s, x, events[deliver.Event]{
		name: "measurement", source: documents,
		id:   func(e deliver.Event) uint64 { return e.ID },
		lost: func(e deliver.Event) int { return e.Lost },
		print: func(out *bytes.Buffer, e deliver.Event) error {
			if err := s.stillTouches(x, p); err != nil {
				return err
			}
			return mir.Encode(out, e.Document)
		},
	})
}

// stillTouches makes sure, before a document is sent on a stream, that the caller may
// still observe the application: one of its processes may have executed a
// set-user-ID program since the stream began. If not, the stream ends with an event
// that says so.
func (s *Server) stillTouches(x *exchange, p Probe) error {
	if x.caller.All {
		return nil
	}
	apps := s.backend.Apps()
	i := slices.IndexFunc(apps, func(a App) bool { return a.Name == p.App })
	if i < 0 || s.mayTouch(x.caller, &apps[i]) { // what was measured of a released application was measured before
		return nil
	}
	const why = "a process of the application belongs to another user now; the stream ends here"
	io.WriteString(x, "event: refused\ndata: "+why+"\n\n")
	http.NewResponseController(x).Flush() // an error means that the caller is gone
	return NewFault(http.StatusForbidden, why)
}
