package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

const (
	valueRequest = `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`
	resetRequest = `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`
	instrRequest = `<instrreq><metric name="COUNT"/></instrreq>`
)

func TestPostPassesTheDocumentOn(t *testing.T) {
	b := one()
	var got mir.Document
	b.do = func(app string, doc mir.Document) (mir.Document, error) {
		got = doc
		return &mir.Measurement{Value: "42"}, nil
	}
	for _, path := range []string{"/mir", "/apps/mmul/mir"} {
		w := ask(t, b, root, "POST", path, valueRequest, "Content-Type", "text/xml; charset=utf-8")
		expect(t, w, 200, `value="42"`)
		if w.Header().Get("Content-Type") != "application/xml" {
			t.Errorf("Content-Type %q", w.Header().Get("Content-Type"))
		}
		if c, ok := got.(*mir.ControlRequest); !ok || c.Action != mir.Value {
			t.Errorf("the backend got %#v", got)
		}
	}
}

func TestPostWithoutAnswer(t *testing.T) {
	b := one()
	b.do = func(string, mir.Document) (mir.Document, error) { return nil, nil }
	expect(t, ask(t, b, root, "POST", "/mir", instrRequest), 204)
}

func TestContentCodings(t *testing.T) {
	for coding, status := range map[string]int{"": 200, "identity": 200, "gzip": 415, "x": 415} {
		expect(t, ask(t, one(), root, "POST", "/mir", valueRequest, "Content-Encoding", coding), status)
	}
}

func TestContentTypes(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{"application/xml", valueRequest, 200},
		{"text/xml", valueRequest, 200},
		{"", valueRequest, 200},
		{"application/x-www-form-urlencoded", " \n" + valueRequest, 200},
		{"application/x-www-form-urlencoded", "a=b", 415},
		{"application/json", valueRequest, 415},
		{"nonsense/;", valueRequest, 415},
		{"application/xml; charset=UTF-8", valueRequest, 200},
		{"text/xml; charset=us-ascii", valueRequest, 200},
		{"application/mir+xml", valueRequest, 200},
		{"application/mir+xml; charset=ISO-8859-1", "<ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", 200},
		{"application/xml", "<?xml version='1.0' encoding='ISO-8859-1'?><ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", 200},
		{"application/xml; charset=utf-8", "<ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", 400},
		{"application/xml", "<ctrlreq xmlns='urn:apart:mir:1' action='VALUE'><probe id='probe-1'/></ctrlreq>", 200},
		{"application/xml; charset=utf-16", valueRequest, 415},
		{"application/x-www-form-urlencoded; charset=utf-16", valueRequest, 415},
	} {
		w := ask(t, one(), root, "POST", "/mir", c.body, "Content-Type", c.kind)
		if w.Code != c.status {
			t.Errorf("%s %q: status %d, want %d: %s", c.kind, c.body, w.Code, c.status, w.Body)
		}
	}
}

func TestErrorsAreDocuments(t *testing.T) {
	fail := func(err error) *scripted {
		b := one()
		b.do = func(string, mir.Document) (mir.Document, error) { return nil, err }
		return b
	}
	at := mir.Position{Line: 3, Column: 7}
	for _, c := range []struct {
		name   string
		b      *scripted
		body   string
		status int
		words  string
	}{
		{"malformed", one(), "<ctrlreq>\n<probe id=1/></ctrlreq>", 400, "line 2, column "},
		{"dtd", one(), "<!DOCTYPE a []><snapshotreq/>", 400, "line 1, column "},
		{"no request", one(), "<probe id='x'/>", 400, "probe"},
		{"too long", one(), "<snapshotreq>" + strings.Repeat(" ", 70_000) + "</snapshotreq>", 413, "65536 bytes"},
		{"not found", fail(translate.Errorf(translate.NotFound, at, "no probe x")), valueRequest, 404, "line 3, column 7: no probe x"},
		{"conflict", fail(translate.Errorf(translate.Conflict, at, "busy")), valueRequest, 409, "busy"},
		{"cannot be done", fail(translate.Errorf(translate.CannotBeDone, at, "no")), valueRequest, 422, "no"},
		{"forbidden", fail(translate.Errorf(translate.Forbidden, at, "no")), valueRequest, 403, "no"},
		{"unavailable", fail(translate.Errorf(translate.Unavailable, at, "no")), valueRequest, 503, "no"},
		{"several", fail(translate.Errors{translate.Errorf(translate.Invalid, at, "one"), translate.Errorf(translate.NotFound, at, "two")}), valueRequest, 400, "</error><error>line 3, column 7: two"},
		{"monitor", fail(fmt.Errorf("asked: %w", omis.Errorf(omis.NoPermission, "traced by gdb (pid 790)"))), valueRequest, 403, "traced by gdb"},
		{"ours", fail(errBroken), valueRequest, 500, "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(t, c.b, root, "POST", "/mir", c.body)
			expect(t, w, c.status, "<errors>", c.words)
			if w.Header().Get("Content-Type") != "application/xml" {
				t.Errorf("Content-Type %q", w.Header().Get("Content-Type"))
			}
		})
	}
}

func TestWhichApplication(t *testing.T) {
	none, two := one(), one()
	none.apps = nil
	two.apps = append(two.apps, App{Name: "web", Owner: 1001})
	expect(t, ask(t, none, root, "POST", "/mir", valueRequest), 404, "mirador run")
	expect(t, ask(t, two, root, "POST", "/mir", valueRequest), 409, "mmul, web")
	expect(t, ask(t, two, root, "POST", "/apps/nix/mir", valueRequest), 404, "mmul, web")
	// The caller may touch only one of the two applications, so it needs no name.
	expect(t, ask(t, two, owner, "POST", "/mir", valueRequest), 200)
	expect(t, ask(t, two, owner, "POST", "/apps/web/mir", valueRequest), 403, "uid 1001")
}

func TestRolesOfDocuments(t *testing.T) {
	for _, c := range []struct {
		body   string
		status int
	}{
		{valueRequest, 200},
		{`<snapshotreq/>`, 200},
		{`<sirreq><resource in="file:///bin/one"/></sirreq>`, 200},
		{resetRequest, 403},
		{instrRequest, 403},
		{`<ctrlreq action="VALUE"><probe id="probe-1"/><metric name="COUNT"/></ctrlreq>`, 403},
	} {
		if w := ask(t, one(), guest, "POST", "/mir", c.body); w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.body, w.Code, c.status, w.Body)
		}
	}
}

func TestExplain(t *testing.T) {
	w := ask(t, one(), root, "POST", "/mir", instrRequest, "Prefer", "respond-async, explain")
	expect(t, w, 200, ": version()")
	if w.Header().Get("Preference-Applied") != "explain" {
		t.Error("the preference is not confirmed")
	}
}

// TestReturnRepresentation checks that only requests with "Prefer: return=representation" get
// extensions: by the DTD of MIR 4 a probe is EMPTY.
func TestReturnRepresentation(t *testing.T) {
	b := one()
	b.do = func(_ string, doc mir.Document) (mir.Document, error) {
		p := &mir.Probe{ID: "probe-1"}
		extended := false
		switch d := doc.(type) {
		case *mir.InstrRequest:
			extended = d.Extended()
		case *mir.ControlRequest:
			extended = d.Extended()
		}
		if extended {
			p.Placements = []omis.Placement{{Name: "inline"}}
		}
		return p, nil
	}
	for _, request := range []string{instrRequest, resetRequest} {
		for prefer, want := range map[string]string{"return=representation": "inline", "wait=3, RETURN=Representation": "inline", "return=minimal": "", "": ""} {
			w := ask(t, b, root, "POST", "/mir", request, "Prefer", prefer)
			expect(t, w, 200, want)
			if got := strings.Contains(w.Body.String(), "inline"); got != (want != "") || got != (w.Header().Get("Preference-Applied") != "") {
				t.Errorf("%q, %s: %s, applied %q", prefer, request, w.Body, w.Header()["Preference-Applied"])
			}
		}
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	b := one()
	b.do = func(string, mir.Document) (mir.Document, error) { panic("oh") }
	expect(t, ask(t, b, root, "POST", "/mir", valueRequest, "X-Request-Id", "mine"), 500, "request mine")
}

// TestCancellationByTheBackend checks that a cancellation is an internal error if the caller has not
// closed the connection.
func TestCancellationByTheBackend(t *testing.T) {
	b := one()
	b.do = func(string, mir.Document) (mir.Document, error) { return nil, context.Canceled }
	w := ask(t, b, root, "POST", "/mir", valueRequest)
	expect(t, w, http.StatusInternalServerError)
}

// TestIdempotencyKey checks which keys the header of a request may have.
func TestIdempotencyKey(t *testing.T) {
	const plain = `<instrreq><metric name="COUNT"/></instrreq>`
	const keyed = `<instrreq xmlns:g="urn:mirador:gateway" g:key="ci-1"><metric name="COUNT"/></instrreq>`
	b := one()
	b.do = func(string, mir.Document) (mir.Document, error) { return &mir.Probe{ID: "probe-1"}, nil }
	for _, c := range []struct {
		body, key string
		status    int
	}{
		{plain, "ci-1", 200}, {keyed, "ci-1", 200}, {keyed, "ci-2", 400}, {plain, "a b", 400}, {plain, "", 400}, {plain, strings.Repeat("x", 129), 400},
		{`<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`, "a b", 200},
	} {
		if w := ask(t, b, owner, "POST", "/mir", c.body, "Idempotency-Key", c.key); w.Code != c.status {
			t.Errorf("%s with the key %q: status %d, want %d: %s", c.body, c.key, w.Code, c.status, w.Body)
		}
	}
}
