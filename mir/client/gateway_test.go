package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	gateway "mirador/http"
	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
)

// TestMain starts one gateway for the examples, which find it by MIRADOR_GATEWAY.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "client-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	s, err := start(filepath.Join(dir, "s.sock"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("MIRADOR_GATEWAY", "unix:"+s.socket)
	dot = s.dot
	status := m.Run()
	if err := errors.Join(s.stop(), s.close(), goleak.Find()); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// dot makes the program of the examples call its function dot n times.
var dot func(n int)

// The process of every test: a program with one function.
const (
	pid   = 4711
	entry = 0x401136
	leave = 0x401190
)

// served is a gateway with the real engine and a fake node.
type served struct {
	socket   string
	node     *fake.Node
	engine   *engine.Engine
	registry *probes.Registry
	process  *fake.Process
	stop     func() error // ends the HTTP server
}

func start(socket string) (*served, error) {
	s := &served{socket: socket, node: fake.New("here")}
	s.process = s.node.Add(pid, []string{"/bin/mmul"}, pid)
	log := slog.New(slog.DiscardHandler)
	e, err := engine.New(s.node, log, pa.New())
	if err != nil {
		return nil, err
	}
	s.engine = e
	s.registry = probes.New(probes.Config{Node: "here", Monitor: monitor{s.node, e}, Runtime: programs{}, Destinations: deliver.Rules{deliver.AnyFile}, Log: log})
	if _, err := s.registry.Attach(context.Background(), "mmul", []int{pid}); err != nil {
		return nil, err
	}
	return s, s.listen()
}

// listen starts the HTTP server.
func (s *served) listen() error {
	l, err := gateway.ListenUnix(s.socket)
	if err != nil {
		return err
	}
	server := gateway.New(gateway.Config{
		SocketPath: s.socket, Decoder: mir.Decoder{Limits: mir.RequestLimits()}, Log: slog.New(slog.DiscardHandler),
		ProcessOwner: func(int) (int, error) { return os.Geteuid(), nil },
	}, backend{registry: s.registry})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, time.Second, l) }()
	s.stop = func() error {
		cancel()
		return <-ended
	}
	return nil
}

func (s *served) close() error {
	ctx := context.Background()
	return errors.Join(s.registry.Close(ctx), s.engine.Close(ctx), s.node.Close(ctx))
}

func (s *served) dot(n int) {
	for range n {
		s.process.Reach(pid, entry, 0x7ffc1000)
		s.process.Reach(pid, leave, 0x7ffc1000)
	}
}

// serve starts a gateway for a test.
func serve(t *testing.T) *served {
	t.Helper()
	s, err := start(filepath.Join(t.TempDir(), "s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.stop(), s.close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// monitor is the engine as package probes needs it.
type monitor struct {
	*fake.Node
	*engine.Engine
}

func (m monitor) Tool(name string) (omis.Tool, error) { return m.Engine.Tool(name), nil }

// programs describes the program of every process.
type programs struct{}

func structure() sir.Program {
	return sir.Program{Path: "/bin/mmul", BuildID: "ab12", Regions: []sir.Region{
		{ID: "mmul:dot", Name: "dot", Symbol: "dot", Kind: sir.Function, File: "work.c", Line: 7, Entry: entry, Size: 96},
	}}
}

func (programs) Name(int) string { return "mmul" }

func (programs) Modules(context.Context, int, string) ([]translate.Module, error) {
	p := structure()
	return []translate.Module{{Path: p.Path, Units: sir.NewIndex(&p), Locator: locator{}}}, nil
}

func (programs) Resolver(context.Context, int) (func(uint64, bool) string, error) {
	return func(uint64, bool) string { return "dot" }, nil
}

func (programs) Start(int) (node.Start, error) { return node.Start{}, nil }

func (programs) Weavings(string, int) []string { return nil }

func (programs) Opened(int) ([]translate.Library, error) { return nil, nil }

func (programs) Goroutines(context.Context, int, int) ([]node.GoroutineInfo, error) { return nil, nil }

type locator struct{}

func (locator) Entries(r *sir.Region) ([]uint64, error) { return []uint64{r.Entry}, nil }
func (locator) Exits(*sir.Region) ([]uint64, error)     { return []uint64{leave}, nil }

// backend has the methods of a gateway.Backend that the client's requests need.
type backend struct {
	gateway.Backend
	registry *probes.Registry
}

func (b backend) Apps() (apps []gateway.App) {
	for _, a := range b.registry.Apps() {
		apps = append(apps, a.Status())
	}
	return apps
}

func (b backend) Attach(ctx context.Context, name string, pids []int) (gateway.App, error) {
	a, err := b.registry.Attach(ctx, name, pids)
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (backend) WovenFor(string, int) []string { return nil }

func (b backend) Launch(ctx context.Context, name string, l node.Launch, pause *probes.Pause) (gateway.App, error) {
	a, err := b.registry.Run(ctx, name, l, pause)
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (b backend) Continue(ctx context.Context, name string) (gateway.App, error) {
	a, err := b.registry.App(name)
	if err == nil {
		err = a.Continue(ctx)
	}
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (backend) Forked(int) []int { return nil }

func (b backend) Release(ctx context.Context, name string, kill bool) error {
	a, err := b.registry.App(name)
	if err != nil {
		return err
	}
	return a.Release(ctx, kill)
}

func (b backend) Do(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return b.answer(ctx, name, doc, probes.Options{})
}

func (b backend) Explain(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return b.answer(ctx, name, doc, probes.Options{Explain: true})
}

func (b backend) answer(ctx context.Context, name string, doc mir.Document, o probes.Options) (mir.Document, error) {
	a, err := b.registry.App(name)
	if err != nil {
		return nil, err
	}
	return a.Answer(ctx, doc, o)
}

func (backend) Structure(context.Context, string, []string, func(string) bool) (*sir.Structure, string, error) {
	return &sir.Structure{Programs: []sir.Program{structure()}}, "1", nil
}

func (b backend) Probes() (all []gateway.Probe) {
	for _, p := range b.registry.Probes() {
		all = append(all, p.Status())
	}
	return all
}

func (b backend) Probe(id string) (gateway.Probe, bool) {
	p, err := b.registry.Probe(id)
	if err != nil {
		return gateway.Probe{}, false
	}
	return p.Status(), true
}

func (b backend) Subscribe(id string, after uint64) (<-chan deliver.Event, func(), error) {
	return b.registry.Subscribe(id, after)
}

func (b backend) CountProbes() int        { return b.registry.CountProbes() }
func (backend) Catalog() []gateway.Metric { return translate.Catalog() }
func (backend) Ready() error              { return nil }

var (
	_ gateway.Backend = backend{}
	_ probes.Monitor  = monitor{}
	_ program.Machine = (*fake.Node)(nil)
)

// one returns the text of a value, and fails unless there is exactly one.
func one(t *testing.T, list []string) string {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("there are %d values: %s", len(list), strings.Join(list, ", "))
	}
	return list[0]
}
