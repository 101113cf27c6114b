package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"mirador/mir"
	"mirador/mir/client"
	"mirador/probes"
	"mirador/sir"
)

func dial(t *testing.T, s *served) *client.Client {
	t.Helper()
	c, err := client.New("unix:"+s.socket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// counting returns a request that counts the calls of dot.
func counting() *mir.InstrRequest {
	return &mir.InstrRequest{
		Region: &mir.CodeRegion{From: "mmul:dot"}, Metrics: []mir.Metric{{Name: "COUNT"}},
		Entities: []mir.Entity{{Kind: mir.Process, ID: "*"}}, Activated: true, Flush: true,
	}
}

func plant(t *testing.T, c *client.Client, r *mir.InstrRequest) *client.Probe {
	t.Helper()
	p, err := c.Instrument(t.Context(), "", r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// value returns the only value of a probe.
func value(t *testing.T, p *client.Probe) string {
	t.Helper()
	r, err := p.Value(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, v := range r.Values {
		texts = append(texts, v.Text)
	}
	return one(t, texts)
}

// TestLife plants a probe, and controls it to its end.
func TestLife(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	p := plant(t, c, counting())
	if p.ID != "probe-1" || p.App != "mmul" || p.Last().Dearest().Name == "" || p.Definition().Region.From != "mmul:dot" {
		t.Errorf("the probe is %+v", p.Last())
	}
	s.dot(3)
	if got := value(t, p); got != "3" {
		t.Errorf("%s calls, want 3", got)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		want string
	}{{"Deactivate", p.Deactivate, "3"}, {"Activate", p.Activate, "5"}, {"Reset", p.Reset, "2"}} {
		if err := step.do(ctx); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		s.dot(2)
		if got := value(t, p); got != step.want {
			t.Errorf("after %s there are %s calls, want %s", step.name, got, step.want)
		}
	}
	if list, err := c.Probes(ctx); err != nil || len(list) != 1 || list[0].ID != p.ID {
		t.Errorf("the probes are %+v, %v", list, err)
	}
	if err := p.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Value(ctx); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after Remove: %v", err)
	}
	if _, err := c.Probe(ctx, p.ID); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after Remove: %v", err)
	}
}

// TestSeveralProbes reads and removes probes of two applications together.
func TestSeveralProbes(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	const another = pid + 1
	s.node.Add(another, []string{"/bin/mmul"}, another)
	if app, err := c.Attach(ctx, "second", another); err != nil || app.Name != "second" {
		t.Fatalf("%+v, %v", app, err)
	}
	if _, err := c.Instrument(ctx, "", counting()); !errors.Is(err, client.ErrConflict) {
		t.Errorf("two applications: %v", err)
	}
	if _, err := c.Structure(ctx, ""); !errors.Is(err, client.ErrConflict) {
		t.Errorf("two applications: %v", err)
	}
	var all []*client.Probe
	for _, app := range []string{"mmul", "second", "mmul"} {
		p, err := c.Instrument(ctx, app, counting())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	s.dot(2)
	r, err := c.Value(ctx, all...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range r.Values {
		got = append(got, fmt.Sprintf("%s %s %s=%s", v.Probe, v.Process, v.Metric, v.Text))
	}
	want := []string{"probe-1 p_1 COUNT=2", "probe-3 p_1 COUNT=2", "probe-2 p_2 COUNT=0"}
	if !slices.Equal(got, want) {
		t.Errorf("the values are %q, want %q", got, want)
	}
	if err := c.Control(ctx, mir.Remove, all...); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Probes(ctx); err != nil || len(list) > 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
	if err := c.Release(ctx, "second", false); err != nil {
		t.Fatal(err)
	}
	if apps, err := c.Apps(ctx); err != nil || len(apps) != 1 {
		t.Errorf("the applications are %+v, %v", apps, err)
	}
	if _, err := c.App(ctx, "second"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a released application: %v", err)
	}
}

// TestRedefinition checks that values are read by the last definition, whoever changed it.
func TestRedefinition(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	p := plant(t, c, counting())
	change := &mir.ControlRequest{Action: mir.Activate, Flush: true, Probes: []mir.ProbeRef{{ID: p.ID}}, Metrics: []mir.Metric{{Name: "WC_TIME"}, {Name: "COUNT"}}}
	if _, err := c.Post(t.Context(), "", change); err != nil {
		t.Fatal(err)
	}
	s.dot(1)
	r, err := p.Value(t.Context())
	if err != nil || len(r.Values) != 2 || r.Values[0].Metric != "WC_TIME" || r.Values[1].Text != "1" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestDocuments asks for what is no probe.
func TestDocuments(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	snapshot, err := c.Snapshot(ctx, "mmul", mir.SnapshotRequest{Named: true})
	if err != nil || snapshot.Entities[0].Children[0].Name != "mmul" {
		t.Errorf("the snapshot is %+v, %v", snapshot, err)
	}
	read, err := c.Structure(ctx, "")
	if err != nil || !reflect.DeepEqual(read.Programs, []sir.Program{structure()}) {
		t.Errorf("the structure is %+v, %v", read, err)
	}
	explained, err := c.Explain(ctx, "", counting())
	if err != nil || len(explained.Requests) == 0 {
		t.Errorf("explained is %+v, %v", explained, err)
	}
	if list, err := c.Probes(ctx); err != nil || len(list) > 0 {
		t.Errorf("Explain has planted %+v, %v", list, err)
	}
	interval := int64(1000)
	if answer, err := c.Post(ctx, "", &mir.InstrRequest{Measuring: &mir.Measuring{Interval: &interval}}); answer != nil || err != nil {
		t.Errorf("defaults are answered by %+v, %v", answer, err)
	}
	part, err := c.FindUnits(ctx, "", "mmul:d", 10)
	if err != nil || len(part.Programs[0].Regions) != 1 {
		t.Errorf("the part of the structure is %+v, %v", part, err)
	}
	if part, err = c.FindUnits(ctx, "", "mmul:x", 10); err != nil || len(part.Programs) != 1 || len(part.Programs[0].Regions) != 0 {
		t.Errorf("the empty part of the structure is %+v, %v", part, err)
	}
	catalog, err := c.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, unit := range map[string]string{
		"WC_TIME": "ms", "mir:COUNT": "1", "SYSCALL_TIME:read": "ms", "linux:SYSCALL_TIME:read": "ms", "mir:SYSCALL_TIME": "", "NONE": "",
	} {
		if m, ok := client.FindMetric(catalog, name); m.Unit != unit || ok != (unit != "") {
			t.Errorf("%s is %+v, %v", name, m, ok)
		}
	}
}

// TestErrors checks the kinds of refusals, with their positions in the text.
func TestErrors(t *testing.T) {
	c := dial(t, serve(t))
	r := counting()
	r.Region.From = "mmul:dut"
	_, err := c.Instrument(t.Context(), "", r)
	var refused *client.Error
	if !errors.As(err, &refused) || !errors.Is(err, client.ErrNotFound) || refused.Status != 404 || len(refused.Faults) != 1 {
		t.Fatalf("%v", err)
	}
	if f := refused.Faults[0]; f.Pos.Line == 0 || f.Pos.Column == 0 || f.Msg != err.Error() {
		t.Errorf("the fault is %+v, the error %q", f, err)
	}
	r.Metrics = []mir.Metric{{Name: "CUONT"}}
	if _, err := c.Instrument(t.Context(), "", r); !errors.As(err, &refused) || len(refused.Faults) < 1 {
		t.Errorf("%v", err)
	}
	if _, err := c.Instrument(t.Context(), "none", r); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an application that does not exist: %v", err)
	}
	gone, err := client.New("unix:/nonexistent/s.sock", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := gone.Apps(t.Context()); !errors.As(err, new(*client.Unreachable)) {
		t.Errorf("no gateway: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Apps(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// TestForeignAnswers checks that an answer of something else than a gateway is an error.
func TestForeignAnswers(t *testing.T) {
	status := http.StatusOK
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, "<html>hello</html>")
	}))
	defer foreign.Close()
	c, err := client.New(foreign.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, status = range []int{http.StatusOK, http.StatusBadGateway} {
		for name, ask := range map[string]func() error{
			"Apps":       func() error { _, err := c.Apps(t.Context()); return err },
			"Structure":  func() error { _, err := c.Structure(t.Context(), "mmul"); return err },
			"Instrument": func() error { _, err := c.Instrument(t.Context(), "", counting()); return err },
		} {
			if err := ask(); err == nil {
				t.Errorf("%s accepts %d", name, status)
			}
		}
	}
}

// delivering returns a request that sends its values every 10 ms.
func delivering() *mir.InstrRequest {
	r, delivery := counting(), int64(10)
	r.Measuring = &mir.Measuring{Delivery: &delivery}
	return r
}

// TestStream reads a stream while the gateway restarts, until the probe is removed.
func TestStream(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	p := plant(t, c, delivering())
	stream, err := p.Stream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var changes []bool
	stream.Connection = func(connected bool) { changes = append(changes, connected) }
	s.dot(4)
	var numbers []uint64
	seen, lost := "", 0
	for r, err := range stream.Readings() {
		if err != nil {
			t.Fatal(err)
		}
		numbers, seen = append(numbers, r.Number), r.Values[0].Text
		lost += r.Lost
		switch len(numbers) {
		case 3:
			if err := errors.Join(s.stop(), s.listen()); err != nil {
				t.Fatal(err)
			}
		case 6:
			if err := p.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(numbers) < 6 || seen != "4" || lost != 0 {
		t.Errorf("%d documents, %d lost, the last has %s calls", len(numbers), lost, seen)
	}
	for i, n := range numbers {
		if n != numbers[0]+uint64(i) {
			t.Fatalf("the numbers are %d", numbers)
		}
	}
	if len(changes) < 2 || changes[0] || !changes[1] {
		t.Errorf("the connection changed to %v", changes)
	}
}

// TestStreamEnds checks that a context ends a stream, and that an unknown probe has none.
func TestStreamEnds(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	p := plant(t, c, delivering())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stream, err := p.Stream(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range stream.Readings() {
		last = err
	}
	if !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("the stream ends with %v", last)
	}
	if err := p.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stream(t.Context(), 0); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("the stream of a removed probe: %v", err)
	}
}

// TestLosses checks that a reader sees how many documents it has missed.
func TestLosses(t *testing.T) {
	const text = "event: lost\ndata: 5\n\nevent: measurement\nid: 7\ndata: <measurement value=\"1\"/>\n\n" +
		"event: lost\ndata: unknown\n\nevent: measurement\nid: 9\ndata: <measurement value=\"2\"/>\n\n" +
		"event: measurement\nid: 10\ndata: <measurement value=\"3\"/>\n\nevent: refused\ndata: not yours\n\n"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /probes/probe-1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id": "probe-1", "app": "mmul", "request": "<instrreq><metric name='COUNT'/><process id='p_1'/></instrreq>"}`)
	})
	mux.HandleFunc("GET /probes/probe-1/stream", func(w http.ResponseWriter, r *http.Request) {
		if after := r.Header.Get("Last-Event-ID"); after != "1" {
			t.Errorf("the stream begins after %q", after)
		}
		fmt.Fprint(w, text)
	})
	fakeGateway := httptest.NewServer(mux)
	defer fakeGateway.Close()
	c, err := client.New(fakeGateway.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Probe(t.Context(), "probe-1")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := p.Stream(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var last error
	for r, err := range stream.Readings() {
		if last = err; err == nil {
			got = append(got, fmt.Sprintf("%d lost, number %d, %s of %s is %s", r.Lost, r.Number, r.Values[0].Metric, r.Values[0].Process, r.Values[0].Text))
		}
	}
	want := []string{"5 lost, number 7, COUNT of p_1 is 1", "-1 lost, number 9, COUNT of p_1 is 2", "0 lost, number 10, COUNT of p_1 is 3"}
	if !slices.Equal(got, want) || !errors.Is(last, client.ErrForbidden) || last.Error() != "not yours" {
		t.Errorf("%q, %v", got, last)
	}
}

// TestPaused starts a program paused, and continues it.
func TestPaused(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	app, err := c.Create(ctx, client.AppRequest{Launch: &client.LaunchRequest{Path: "/bin/early"}, Paused: true})
	if err != nil || app.State != probes.Paused || app.Processes[0].Paused != "before its first instruction" {
		t.Fatalf("the application is %+v, %v", app, err)
	}
	if app, err = c.Continue(ctx, app.Name); err != nil || app.State != probes.Running {
		t.Errorf("the application is %+v, %v", app, err)
	}
	if _, err := c.Continue(ctx, app.Name); !errors.Is(err, client.ErrConflict) {
		t.Errorf("continued twice: %v", err)
	}
}
