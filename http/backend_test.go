package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"mirador/http/identity"
	"mirador/mir"
	"mirador/mir/api"
	"mirador/mir/conform"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
)

// scripted is a Backend that gives the answers in its fields.
type scripted struct {
	woven    probes.Sources
	named    []string // sources
	wovenFor string
	apps     []App
	probes   []Probe
	do       func(app string, doc mir.Document) (mir.Document, error)
	insides  int // calls of Inside
	programs []string
	omisRole Role
	flags    omis.Flags // of the last request
	ready    error

	mu        sync.Mutex
	released  []string
	launched  []node.Launch
	pauses    []*probes.Pause // of the launched programs
	continued []string
	labelled  []probes.Labelled
	attached  []int
	forked    map[int][]int
	followed  []string
	streams   map[string]chan deliver.Event
	traced    chan probes.TracedBatch
	replies   chan StreamedReply
	owners    map[int]int // uids by pid; nil: ask the kernel
	after     uint64      // the event id after which the last stream began
}

var _ Backend = (*scripted)(nil)

func (s *scripted) Apps() []App { return s.apps }

func (s *scripted) Continue(_ context.Context, app string) (App, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continued = append(s.continued, app)
	return App{Name: app, State: probes.Running}, nil
}

func (s *scripted) Launch(_ context.Context, name string, l node.Launch, pause *probes.Pause) (App, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched = append(s.launched, l)
	s.pauses = append(s.pauses, pause)
	return App{Name: name, Processes: []Process{{Token: "p_1", PID: 4711}}}, nil
}

func (s *scripted) Attach(_ context.Context, name string, pids []int) (App, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = append(s.attached, pids...)
	return App{Name: name, Processes: []Process{{Token: "p_1", PID: pids[0]}}}, nil
}

func (s *scripted) Create(name string, owner int) (App, error) {
	app := App{Name: name, State: "empty", Owner: owner}
	s.apps = append(s.apps, app)
	return app, nil
}

func (s *scripted) Weave(_ context.Context, _ string, sources probes.Sources) error {
	s.woven = sources
	return nil
}

func (s *scripted) NameSources(_ string, files []string) error {
	s.named = files
	return nil
}

func (s *scripted) WovenFor(string, int) []string { return []string{s.wovenFor} }

func (s *scripted) Forked(pid int) []int { return s.forked[pid] }

func (s *scripted) Follow(_ context.Context, app string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed = append(s.followed, app)
	return nil
}

func (s *scripted) Release(_ context.Context, app string, kill bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kill {
		app += " and kill"
	}
	s.released = append(s.released, app)
	return nil
}

func (s *scripted) Do(_ context.Context, app string, doc mir.Document) (mir.Document, error) {
	return s.do(app, doc)
}

func (s *scripted) Explain(context.Context, string, mir.Document) (mir.Document, error) {
	return &mir.Explain{Requests: []mir.ExplainedRequest{{Text: ": version()"}}}, nil
}

func (s *scripted) Programs(context.Context, string) ([]string, error) { return s.programs, nil }

func (s *scripted) Loaded(_ context.Context, app, process string) ([]string, error) {
	if process != "p_1" {
		return nil, fmt.Errorf("application %s has no process %s", app, process)
	}
	return s.programs, nil
}

func (s *scripted) Structure(_ context.Context, _ string, files []string, _ func(string) bool) (*sir.Structure, string, error) {
	structure := &sir.Structure{}
	for _, f := range append(files, "/bin/one") {
		if strings.HasSuffix(f, "damaged") {
			return nil, "", translate.Errorf(translate.CannotBeDone, mir.Position{}, "not a program")
		}
		structure.Programs = append(structure.Programs, sir.Program{Path: f, Regions: []sir.Region{{ID: "one:f", Name: "f", Kind: "function"}}})
	}
	return structure, "tag1", nil
}

// Inside adds a loop with a body to each function.
func (s *scripted) Inside(_ context.Context, _ string, structure *sir.Structure) (*sir.Structure, error) {
	s.insides++
	for i := range structure.Programs {
		for k := range structure.Programs[i].Regions {
			f := &structure.Programs[i].Regions[k]
			body := sir.Region{ID: f.ID + "/loop1/body", Name: "body", Kind: sir.Body, Code: &sir.Code{}}
			f.Regions = []sir.Region{{ID: f.ID + "/loop1", Name: "loop1", Kind: sir.Loop, Code: &sir.Code{}, Regions: []sir.Region{body}}}
		}
	}
	return structure, nil
}

func (s *scripted) FindPlacements(_ context.Context, _ string, structure *sir.Structure) error {
	for i := range structure.Programs {
		for k := range structure.Programs[i].Regions {
			structure.Programs[i].Regions[k].Placements = &sir.Placements{Counted: []string{"trap"}, Timed: []string{"trap"}}
		}
	}
	return nil
}

func (s *scripted) Locks(context.Context, string) ([]api.Lock, error) {
	return []api.Lock{{Process: "p_1", PID: 7, Address: "0x10", Waiting: []int{8}}}, nil
}

func (s *scripted) Probes() []Probe { return s.probes }

func (s *scripted) Probe(id string) (Probe, bool) {
	for _, p := range s.probes {
		if p.ID == id {
			return p, true
		}
	}
	return Probe{}, false
}

func (s *scripted) Labelled(_ context.Context, apps []string) (list []probes.Labelled) {
	for _, l := range s.labelled {
		if slices.Contains(apps, l.Status.App) {
			list = append(list, l)
		}
	}
	return list
}

func (s *scripted) CountProbes() int { return len(s.probes) }

func (s *scripted) Subscribe(id string, after uint64) (<-chan deliver.Event, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.streams[id]
	s.after = after
	if c == nil {
		return nil, nil, translate.Errorf(translate.Conflict, mir.Position{}, "%s delivers nothing", id)
	}
	return c, func() {}, nil
}

func (s *scripted) Trace(string) (<-chan probes.TracedBatch, func(), error) {
	return s.traced, func() {}, nil
}

func (s *scripted) OMISRole(string) Role { return s.omisRole }

func (s *scripted) OMIS(_ context.Context, tool, request string, flags omis.Flags) (omis.Reply, error) {
	if s.flags = flags; flags&omis.BufferRequest != 0 {
		return nil, nil
	}
	return omis.Reply{{{Status: omis.OK}}, {{
		Objects: []omis.Token{"p_1"}, Status: omis.OK,
		Values: []omis.Value{omis.String(tool + ": <" + request + ">"), omis.Int(-7), omis.List(omis.Float(1.5)), omis.Binary([]byte{0})},
	}}, {{Objects: []omis.Token{"p_2"}, Status: omis.UnknownObject, Msg: "no p_2"}}}, nil
}

func (s *scripted) Replies(_ string, after uint64) (<-chan StreamedReply, func(), error) {
	s.after = after
	return s.replies, func() {}, nil
}

func (s *scripted) Describe(name, text string) error {
	if text != "int f(void);" {
		return omis.Errorf(omis.ParameterError, "%s:1:1: %s", name, text)
	}
	return nil
}

func (s *scripted) Finalize(tool string) error {
	return NewFault(http.StatusNotFound, "there is no tool "+tool)
}

func (s *scripted) Catalog() []Metric {
	return []Metric{{Name: "COUNT", Unit: "1", Kind: "counter", Entities: []mir.EntityKind{mir.Thread}, Region: true}}
}

func (s *scripted) Tools() []Tool {
	return []Tool{{Name: "mine", Streams: 1}, {Name: "mmul", Application: true}}
}

func (s *scripted) Services() []service.Service {
	return []service.Service{{Name: "version", Kind: service.Information}}
}

func (s *scripted) Schemas() fs.FS {
	return fstest.MapFS{"mir.xsd": {Data: []byte("<schema/>")}, "schemas.go": {Data: []byte("package")}}
}

func (s *scripted) Ready() error { return s.ready }

// noPID is greater than every pid of Linux.
const noPID = 1<<22 + 1

// one returns a backend with one application of the uid 1000.
func one() *scripted {
	return &scripted{
		apps:     []App{{Name: "mmul", Owner: 1000, Processes: []Process{{Token: "p_1", PID: noPID}}}},
		probes:   []Probe{{ID: "probe-1", App: "mmul", State: "active", Metrics: []string{"COUNT"}}},
		do:       func(string, mir.Document) (mir.Document, error) { return &mir.Probe{ID: "probe-1"}, nil },
		programs: []string{"/bin/one"},
		omisRole: Read,
	}
}

var (
	root  = &Caller{Name: "uid 0", Role: Debug, UID: 0, All: true}
	owner = &Caller{Name: "uid 1000", Role: Debug, UID: 1000}
	other = &Caller{Name: "uid 1001", Role: Debug, UID: 1001}
	guest = &Caller{Name: "certificate guest", Role: Read, UID: -1, All: true}
)

const secret = "0123456789abcdef0123456789abcdef"

func newTestServer(b Backend) *Server {
	cfg := Config{
		SocketPath: "/run/test.sock", Token: Token{secret: secret, path: "/data/token"},
		Notation: func(r omis.Reply) string { return "notation of " + r[0][0].Status.String() + "\n" },
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if s, ok := b.(*scripted); ok && s.owners != nil {
		cfg.ProcessOwner = s.ownerOf
	}
	return New(cfg, b)
}

func (s *scripted) ownerOf(pid int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid, ok := s.owners[pid]
	if !ok {
		return 0, identity.ErrNoProcess
	}
	return uid, nil
}

// ask sends one request as a caller; nil means over TCP, without a token.
func ask(t *testing.T, b Backend, c *Caller, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if c != nil {
		r = r.WithContext(withCaller(r.Context(), c))
	}
	w := httptest.NewRecorder()
	newTestServer(b).ServeHTTP(w, r)
	conforms(t, r, body, w)
	return w
}

// conforms checks the answer to a MIR document.
func conforms(t *testing.T, r *http.Request, request string, w *httptest.ResponseRecorder) {
	t.Helper()
	if r.Method == http.MethodPost && path.Base(r.URL.Path) == "mir" {
		new(conform.Conversation).Answer(t, r.Header.Get("Prefer"), []byte(request), w.Body.Bytes())
	}
}

func expect(t *testing.T, w *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	for _, part := range parts {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("%q is missing in %s", part, w.Body)
		}
	}
}

var errBroken = errors.New("broken")
