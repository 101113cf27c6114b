package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mirador/mir"
)

// memory is a Store that survives the Queues that use it.
type memory struct {
	sync.Mutex
	values map[string]string
}

func newMemory() *memory { return &memory{values: make(map[string]string)} }

func (m *memory) Keys(prefix string) (list []string) {
	m.Lock()
	defer m.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.values)) {
		if strings.HasPrefix(key, prefix) {
			list = append(list, key)
		}
	}
	return list
}

func (m *memory) Get(key string, value any) (bool, error) {
	m.Lock()
	defer m.Unlock()
	text, ok := m.values[key]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal([]byte(text), value)
}

func (m *memory) Update(values map[string]any) error {
	m.Lock()
	defer m.Unlock()
	for key, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if m.values[key] = string(text); value == nil {
			delete(m.values, key)
		}
	}
	return nil
}

// send sends a document to a destination outside of an outlet.
func send(d Destination, m mir.Document) {
	d.Send(m)
	d.Commit()
}

// copied returns a copy of the store: what the next gateway finds if this one is killed now.
func (m *memory) copied() *memory {
	m.Lock()
	defer m.Unlock()
	return &memory{values: maps.Clone(m.values)}
}

// server receives documents, and answers with its status.
type server struct {
	*httptest.Server
	status atomic.Int64

	mu       sync.Mutex
	received []string // number/lost text
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := int(s.status.Load())
		if status == http.StatusOK {
			text, _ := io.ReadAll(r.Body)
			s.mu.Lock()
			s.received = append(s.received, fmt.Sprintf("%s/%s %s %s", r.Header.Get("Mirador-Number"), r.Header.Get("Mirador-Lost"), r.Header.Get("Mirador-Probe"), text))
			s.mu.Unlock()
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func parsed(t *testing.T, uri string) Address {
	t.Helper()
	a, err := ParseAddress(uri)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var self = User{UID: -1, Trusted: true}

func to(t *testing.T, all *Queues, uri string) Destination {
	t.Helper()
	d, err := all.To("probe-1", parsed(t, uri), self)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func value(n int) *mir.Measurement { return &mir.Measurement{Value: fmt.Sprint(n)} }

func want(first, last int) (list []string) {
	for n := first; n <= last; n++ {
		list = append(list, fmt.Sprintf(`%d/0 probe-1 <measurement value="%d"/>`, n, n))
	}
	return list
}

func TestDocumentsArriveInOrder(t *testing.T) {
	s, m := newServer(t), newMemory()
	all := OpenQueues(Rules{s.URL}, m, quiet())
	d := to(t, all, s.URL+"/in")
	for n := range 100 {
		send(d, value(n+1))
	}
	d.Close()
	eventually(t, "all arrive", func() bool { return len(s.list()) == 100 })
	if got := s.list(); !slices.Equal(got, want(1, 100)) {
		t.Errorf("received is %q", got)
	}
	eventually(t, "the store is empty", func() bool { return len(m.Keys("")) == 0 })
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKilledWhileTheServerIsAway kills a hundred gateways, before and after documents were
// delivered. It checks that every document arrives, in order except for repetitions.
func TestKilledWhileTheServerIsAway(t *testing.T) {
	s, m := newServer(t), newMemory()
	n := 0
	for round := range 100 {
		if round%3 == 0 {
			s.status.Store(http.StatusServiceUnavailable)
		} else {
			s.status.Store(http.StatusOK)
		}
		all := OpenQueues(Rules{s.URL}, m, quiet())
		d := to(t, all, s.URL+"/in")
		for range 5 {
			n++
			send(d, value(n))
		}
		time.Sleep(time.Duration(round%4) * time.Millisecond)
		m = m.copied() // the next gateway does not see later changes of the killed one
		all.stop()
		for _, q := range all.list {
			<-q.ended
		}
	}
	s.status.Store(http.StatusOK)
	all := OpenQueues(Rules{s.URL}, m, quiet())
	eventually(t, "all leave the queue", func() bool { return all.States("probe-1")[0].Delivered == int64(n) })
	expected := want(1, n)
	arrived := 0
	for _, document := range s.list() {
		switch {
		case arrived < n && document == expected[arrived]:
			arrived++
		case !slices.Contains(expected[:arrived], document):
			t.Fatalf("%q arrives after %d others", document, arrived)
		}
	}
	if arrived != n {
		t.Errorf("%d of %d documents arrived", arrived, n)
	}
	if state := all.States("probe-1")[0]; state.Lost != 0 || state.Waiting != 0 {
		t.Errorf("the state is %+v", state)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMemoryOfWaitingDocuments checks that the limits count the memory that a small document takes while it waits.
func TestMemoryOfWaitingDocuments(t *testing.T) {
	s, m := newServer(t), newMemory()
	s.status.Store(http.StatusInternalServerError)
	all := OpenQueues(Rules{s.URL}, m, quiet())
	inUse := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := inUse()
	const probes = 10
	for p := range probes {
		d, err := all.To(fmt.Sprint("probe-", p+1), parsed(t, s.URL), self)
		if err != nil {
			t.Fatal(err)
		}
		for n := range mostWaiting {
			send(d, value(n))
		}
	}
	if took, counted := inUse()-before, all.total; took > counted {
		t.Errorf("%d documents take %d bytes each, and count for %d", probes*mostWaiting, took/probes/mostWaiting, counted/probes/mostWaiting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no document can be delivered
	_ = all.Close(ctx)
}

// TestLossIsReported loses documents, by a full queue and by a server that refuses one. It
// checks that the next document has the number of lost documents.
func TestLossIsReported(t *testing.T) {
	s, m := newServer(t), newMemory()
	s.status.Store(http.StatusInternalServerError)
	all := OpenQueues(Rules{s.URL}, m, quiet())
	d := to(t, all, s.URL)
	const tooMany = 7
	for n := range mostWaiting + tooMany {
		send(d, value(n+1))
	}
	if state := all.States("probe-1")[0]; state.Lost != tooMany || state.Waiting != mostWaiting {
		t.Errorf("the state is %+v", state)
	}
	eventually(t, "the failure shows", func() bool { return strings.Contains(all.States("probe-1")[0].Failure, "500") })
	s.status.Store(http.StatusOK)
	eventually(t, "the waiting documents arrive", func() bool { return len(s.list()) == mostWaiting })
	send(d, value(9))
	eventually(t, "the next one arrives", func() bool { return len(s.list()) == mostWaiting+1 })
	if got, want := s.list()[mostWaiting], fmt.Sprintf(`%d/%d probe-1 <measurement value="9"/>`, mostWaiting+tooMany+1, tooMany); got != want {
		t.Errorf("received is %q, want %q", got, want)
	}
	s.status.Store(http.StatusBadRequest)
	send(d, value(10))
	eventually(t, "the refused document leaves the queue", func() bool { return all.States("probe-1")[0].Lost == tooMany+1 })
	s.status.Store(http.StatusOK)
	send(d, value(11))
	eventually(t, "the next one arrives", func() bool { return len(s.list()) == mostWaiting+2 })
	if got, want := s.list()[mostWaiting+1], fmt.Sprintf(`%d/1 probe-1 <measurement value="11"/>`, mostWaiting+tooMany+3); got != want {
		t.Errorf("received is %q, want %q", got, want)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRedirectIsNotFollowed checks that a server cannot send documents to a place that the
// configuration does not allow.
func TestRedirectIsNotFollowed(t *testing.T) {
	s := newServer(t)
	s.status.Store(http.StatusTemporaryRedirect)
	all := OpenQueues(Rules{s.URL}, nil, quiet())
	d := to(t, all, s.URL)
	send(d, value(1))
	eventually(t, "the failure shows", func() bool { return strings.Contains(all.States("probe-1")[0].Failure, "307") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := all.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 measurements could not be delivered") {
		t.Errorf("without a store the error is %v", err)
	}
	if _, err := all.To("probe-2", parsed(t, s.URL), self); err == nil {
		t.Error("a queue was opened after Close")
	}
}

func TestAddresses(t *testing.T) {
	for uri, why := range map[string]string{
		"file:///tmp/foo.txt": "", "file://localhost/tmp/x": "", "http://host:80/a?b=c": "", "https://host": "",
		"file:///tmp/x?max-size=10M&max-age=1h&keep=3&sync=true": "",
		"file://host/tmp/x":         "no file of this machine",
		"file:relative":             "no file of this machine",
		"file:///tmp/../etc/x":      "without the parts . and ..",
		"file:///tmp/%00":           "no file of this machine",
		"file:///tmp/x?size=1":      `no parameter "size"`,
		"file:///tmp/x?max-size=1X": "a size such as",
		"file:///tmp/x?max-size=":   "a size such as",
		"file:///tmp/x?max-age=1ms": "less than a second",
		"file:///tmp/x?keep=0":      "from 1 to 100",
		"http:///x":                 "names no server",
		"http://user:secret@host/":  "without a user",
		"unix:///run/x":             "", "unix:relative": "write unix:///directory/name", "unix:///run/x?max-size=1": "no parameters",
		"mailto:x@y":    "file, unix, http and https are known",
		"/tmp/x":        "file, unix, http and https are known",
		"http://ho st/": "is no URI",
	} {
		_, err := ParseAddress(uri)
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", uri, err, why)
		}
	}
}

func TestRules(t *testing.T) {
	rules := Rules{"file:///srv/data/", "http://Good.example/in", "https://host:8443"}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]bool{
		"file:///srv/data/x": true, "file:///srv/data/deep/x": true, "file:///srv/database": false, "file:///etc/x": false,
		"http://good.example/in": true, "http://good.example/in/x?y": true, "http://good.example/inner": false,
		"http://good.example.evil/in": false, "https://good.example/in": false, "http://good.example:81/in": false,
		"https://host:8443/any": true, "https://host/any": false, "http://good.example/in/../out": false,
	} {
		if got := rules.Allow(parsed(t, uri)); got != want {
			t.Errorf("%s is allowed: %v", uri, got)
		}
	}
	if !(Rules{AnyFile}).Allow(parsed(t, "file:///any/where")) || (Rules{}).Allow(parsed(t, "file:///any")) ||
		!(Rules{AnySocket}).Allow(parsed(t, "unix:///any")) || (Rules{AnyFile}).Allow(parsed(t, "unix:///any")) {
		t.Error("the rule for all files refuses one, or an empty list of rules allows one")
	}
	if err := (Rules{"ftp://x"}).Check(); err == nil {
		t.Error("a rule for ftp is accepted")
	}
	all := OpenQueues(rules, nil, quiet())
	if _, err := all.To("probe-1", parsed(t, "http://other/"), self); err == nil || !strings.Contains(err.Error(), "its configuration allows file:///srv/data/, http") {
		t.Errorf("the error is %v", err)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFullStore checks that no document is lost if the store cannot be written.
func TestFullStore(t *testing.T) {
	s := newServer(t)
	all := OpenQueues(Rules{s.URL}, fullStore{newMemory()}, quiet())
	d := to(t, all, s.URL)
	send(d, value(1))
	d.Close()
	eventually(t, "it arrives", func() bool { return slices.Equal(s.list(), want(1, 1)) })
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type fullStore struct{ *memory }

func (fullStore) Update(map[string]any) error { return errors.New("the disk is full") }

// TestRoomOfAUser fills the room of one user. Another user's documents still wait.
func TestRoomOfAUser(t *testing.T) {
	s := newServer(t)
	s.status.Store(http.StatusInternalServerError)
	all := OpenQueues(Rules{s.URL}, nil, quiet())
	send := func(probe string, u User, documents, size int) State {
		d, err := all.To(probe, parsed(t, s.URL), u)
		if err != nil {
			t.Fatal(err)
		}
		for range documents {
			send(d, &mir.Measurement{Value: strings.Repeat("1", size)})
		}
		return all.States(probe)[0]
	}
	if state := send("probe-1", User{UID: 1000}, 20, 1<<20); state.Lost == 0 || state.Waiting < 10 || state.Waiting > 16 {
		t.Errorf("of 20 documents of a megabyte, %d wait and %d are lost", state.Waiting, state.Lost)
	}
	if state := send("probe-2", User{UID: 1000}, 1, 1<<20); state.Lost != 1 {
		t.Errorf("another probe of the user: %+v", state)
	}
	if state := send("probe-3", User{UID: 1001}, 3, 1<<20); state.Lost != 0 || state.Waiting != 3 {
		t.Errorf("another user: %+v", state)
	}
	s.status.Store(http.StatusOK)
	eventually(t, "all arrive", func() bool { return all.States("probe-1")[0].Waiting+all.States("probe-3")[0].Waiting == 0 })
	if all.roomMu.Lock(); len(all.bytes) != 0 {
		t.Errorf("room is taken by nothing: %v", all.bytes)
	}
	all.roomMu.Unlock()
	if err := all.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
