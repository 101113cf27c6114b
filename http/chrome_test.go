package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir/translate"
	"mirador/probes"
)

// chromeRead is an event as a viewer reads it.
type chromeRead struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Scope string         `json:"s"`
	Time  float64        `json:"ts"`
	PID   *int           `json:"pid"`
	TID   *int           `json:"tid"`
	Args  map[string]any `json:"args"`
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkChrome checks a trace by the rules of the format: a JSON array; each thread and process is
// named before its first event; each beginning has an end with its name, which encloses those
// inside it; times of a thread ascend.
func checkChrome(t tester, text []byte) []chromeRead {
	t.Helper()
	var all []chromeRead
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, text)
	}
	type thread struct {
		open  []string
		named bool
		last  float64
	}
	processes, threads := make(map[int]bool), make(map[[2]int]*thread)
	for i, e := range all {
		if e.Name == "" || e.PID == nil || e.TID == nil {
			t.Fatalf("event %d has no name, pid or tid: %s", i, text)
		}
		at := [2]int{*e.PID, *e.TID}
		s := threads[at]
		if s == nil {
			s = &thread{}
			threads[at] = s
		}
		switch e.Phase {
		case "M":
			if _, ok := e.Args["name"].(string); !ok {
				t.Fatalf("event %d names nothing: %s", i, text)
			}
			processes[*e.PID] = processes[*e.PID] || e.Name == "process_name"
			s.named = s.named || e.Name == "thread_name"
			continue
		case "B":
			s.open = append(s.open, e.Name)
		case "E":
			n := len(s.open)
			if n == 0 || s.open[n-1] != e.Name {
				t.Fatalf("event %d ends %s, open are %v: %s", i, e.Name, s.open, text)
			}
			s.open = s.open[:n-1]
		case "i":
			if e.Scope == "g" {
				continue
			}
			if e.Scope != "t" {
				t.Fatalf("event %d has the scope %q: %s", i, e.Scope, text)
			}
		default:
			t.Fatalf("event %d has the phase %q: %s", i, e.Phase, text)
		}
		if !s.named || !processes[*e.PID] || e.Time < s.last {
			t.Fatalf("event %d is of an unnamed thread, or before its predecessor: %s", i, text)
		}
		s.last = e.Time
	}
	for at, s := range threads {
		if len(s.open) > 0 {
			t.Fatalf("%v is open in thread %v at the end: %s", s.open, at, text)
		}
	}
	return all
}

// TestChromeFormat checks that whatever a recorder finds becomes a valid trace.
func TestChromeFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := newChrome(&out)
		last := rapid.Int64Range(0, 1<<60).Draw(t, "time")
		for range rapid.IntRange(0, 5).Draw(t, "batches") {
			b := probes.TracedBatch{Lost: rapid.Int64Range(0, 3).Draw(t, "lost")}
			for range rapid.IntRange(0, 10).Draw(t, "events") {
				last += rapid.Int64Range(-5, 2000).Draw(t, "later")
				b.Events = append(b.Events, probes.Traced{
					PID: 10, TID: rapid.IntRange(10, 12).Draw(t, "tid"), Process: "mmul", Thread: `a "thread"`, Name: "dot", Time: last,
					Goroutine: rapid.SampledFrom([]uint64{0, 0xc000002380, 0xc000186e00}).Draw(t, "goroutine"),
					What:      translate.What(rapid.IntRange(int(translate.Executed), int(translate.Unmatched)).Draw(t, "what")),
					Values:    []translate.NamedValue{{Metric: "WC_TIME", Value: "0.5"}},
				})
			}
			w.batch(b)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		checkChrome(t, out.Bytes())
	})
}

// TestTraceRoute checks that the route streams the events of a trace, and completes the array.
func TestTraceRoute(t *testing.T) {
	b := &scripted{probes: []Probe{{ID: "probe-1", App: "mmul"}}, traced: make(chan probes.TracedBatch, 2)}
	at := func(what translate.What, ns int64) probes.Traced {
		return probes.Traced{PID: 812, TID: 813, Process: "mmul", Thread: "worker", Name: "dot", What: what, Time: ns}
	}
	b.traced <- probes.TracedBatch{Events: []probes.Traced{at(translate.Left, 500), at(translate.Entered, 1_000_500)}}
	b.traced <- probes.TracedBatch{Lost: 7, Events: []probes.Traced{at(translate.Left, 2_000_000)}}
	close(b.traced)
	code, header, text := getTrace(t, b, "for=1h")
	all := checkChrome(t, text)
	var found []string
	for _, e := range all {
		found = append(found, e.Phase)
	}
	if got := strings.Join(found, ""); code != 200 || header.Get("Content-Type") != "application/json" || got != "MMiBiE" || all[2].Args["end"] != "leave" || all[3].Time != 1000.5 {
		t.Errorf("%d %v, %s: %s", code, header, got, text)
	}
	if code, _, text := getTrace(t, b, "for=never"); code != http.StatusBadRequest {
		t.Errorf("for=never is answered with %d: %s", code, text)
	}
}

// getTrace gets the trace of probe-1.
func getTrace(t *testing.T, b *scripted, query string) (code int, header http.Header, text []byte) {
	t.Helper()
	s := newTestServer(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(withCaller(r.Context(), peer(0, 0))))
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/probes/probe-1/trace?" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, text
}
