package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	gateway "mirador/http"
	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/ext/pa"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/place/calibrate"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/probes"
	"mirador/probes/journal"
	"mirador/schemas"
	"mirador/sir"
)

// monitor is the whole house below the gateway: the node, the engine over it,
// and the applications with their probes. Its methods may be called from any
// goroutine.
type monitor struct {
	node     *linux.Node
	machine  omis.Node // the node as the engine sees it
	engine   *engine.Engine
	programs *programs
	registry *probes.Registry
	tools    *tools
}

var _ gateway.Backend = (*monitor)(nil)

// placing is a node that can have programs run elsewhere than in the monitor.
type placing struct {
	*linux.Node
	*calibrate.Costs
	placers []placer // cheapest first
}

// placer is a placement of this machine.
type placer interface {
	omis.Placer
	// Close gives back what all programs share, when all of them were removed.
	Close() error
}

// hider is a placer that changes code behind the node's back.
type hider interface {
	// Hide puts the original bytes where it has changed code into memory that was read.
	Hide(id omis.ProcID, addr uint64, memory []byte)
}

var (
	_ omis.Placements = placing{}
	_ omis.Costs      = placing{}
	_ omis.CPUTimer   = placing{}
)

// newPlacing gives a node the placements that the settings allow.
func newPlacing(node *linux.Node, s settings, log *slog.Logger, j *journal.Journal) omis.Node {
	p := placing{Node: node}
	if s.mayPlace(inline.Name) {
		p.placers = append(p.placers, inline.New(node))
	}
	if s.mayPlace(kernel.Name) {
		inKernel := kernel.NewKeeper(registrarSelf(), s.Data, j)
		inKernel.DateBy(node.Now)
		inKernel.CheckBy(node.Boundaries)
		inKernel.NoticeBy(func(message string) { log.Warn(message) })
		p.placers = append(p.placers, inKernel)
	}
	p.Costs = calibrate.New(calibrate.Config{Node: node, Placers: p.Placers(), File: s.costs(), Log: log})
	return p
}

func (p placing) Placers() []omis.Placer {
	list := make([]omis.Placer, len(p.placers))
	for i, placer := range p.placers {
		list[i] = placer
	}
	return list
}

// servant is a placer that has a process of its own.
type servant interface {
	// Registrar is the process that sets uprobes, 0 while there is none.
	Registrar() int
}

// Identify refuses what placers need: they would wait for it, and it for the monitor.
func (p placing) Identify(pid int) (omis.ProcID, error) {
	for _, placer := range p.placers {
		if s, ok := placer.(servant); ok && pid > 0 && pid == s.Registrar() {
			return omis.ProcID{}, omis.Errorf(omis.ParameterError, "process %d is the registrar, which sets uprobes for the monitor; the monitor must not stop it", pid)
		}
	}
	return p.Node.Identify(pid)
}

func (p placing) ReadMemory(id omis.ProcID, addr uint64, buf []byte) (int, error) {
	n, err := p.Node.ReadMemory(id, addr, buf)
	for _, placer := range p.placers {
		if h, ok := placer.(hider); ok {
			h.Hide(id, addr, buf[:n])
		}
	}
	return n, err
}

func (p placing) Close(ctx context.Context) error {
	errs := []error{p.Costs.Close(), p.Node.Close(ctx)}
	for _, placer := range p.placers {
		errs = append(errs, placer.Close())
	}
	return errors.Join(errs...)
}

// join builds a monitor from its parts. The journal is the caller's; it is closed after
// the monitor.
func join(s settings, log *slog.Logger, j *journal.Journal) (*monitor, error) {
	node, err := linux.Open(linux.Config{
		Name: s.Node, Warden: []string{"/proc/self/exe", wardenCommand},
		Prototypes: s.Prototypes, Checkpoints: s.checkpoints(), Ptrace: s.Hold == holdByPtrace, Sharing: s.Prefer == preferSharing,
	})
	if err != nil {
		return nil, err
	}
	m := &monitor{node: node, machine: newPlacing(node, s, log, j), programs: newPrograms(node)}
	if m.engine, err = engine.New(m.machine, log, pa.New()); err != nil {
		return nil, errors.Join(err, m.machine.Close(context.Background()))
	}
	left, err := heritage(j, node, m.engine, log)
	if err != nil {
		return nil, errors.Join(err, m.engine.Close(context.Background()), m.machine.Close(context.Background()))
	}
	m.tools = newTools(m.engine)
	m.registry = probes.New(probes.Config{
		Node: s.Node, NewTool: m.tools.ofApp, ProgramName: programName,
		Modules: m.programs.modules, Resolver: m.programs.resolver, Placement: placement, Placed: placed, Spent: spent, Heritage: left, Log: log,
	})
	return m, nil
}

// calibrate measures what probes cost, where the data directory does not say so yet. It
// returns early when the monitor closes.
func (m *monitor) calibrate(log *slog.Logger) {
	p, ok := m.machine.(placing)
	if !ok {
		return
	}
	begin := time.Now()
	if p.CalibrateAll() {
		log.Info("measured what probes cost on this machine", "seconds", time.Since(begin).Seconds())
	}
}

// Close takes everything back, from the top down: what is above the node must
// have let go before it is closed.
func (m *monitor) Close(ctx context.Context) error {
	return errors.Join(m.registry.Close(ctx), m.engine.Close(ctx), m.machine.Close(ctx))
}

func (m *monitor) Apps() []gateway.App {
	var apps []gateway.App
	for _, a := range m.registry.Apps() {
		apps = append(apps, describe(a))
	}
	return apps
}

func describe(a *probes.App) gateway.App {
	app := gateway.App{Name: a.Name(), State: a.State()}
	for i, p := range a.Processes() {
		switch {
		case i == 0:
			app.Owner = p.UID
		case app.Owner != p.UID:
			app.Owner = 0 // several users' processes: root's business
		}
		app.Processes = append(app.Processes, gateway.Process{Token: p.Token, PID: p.PID, Argv: p.Argv, Started: p.Started, Gone: p.Gone})
	}
	return app
}

func (m *monitor) Launch(ctx context.Context, name string, l omis.Launch) (gateway.App, error) {
	a, err := m.registry.Run(ctx, name, l)
	if err != nil {
		return gateway.App{}, err
	}
	return describe(a), nil
}

func (m *monitor) Attach(ctx context.Context, name string, pids []int) (gateway.App, error) {
	a, err := m.registry.Attach(ctx, name, pids)
	if err != nil {
		return gateway.App{}, err
	}
	return describe(a), nil
}

func (m *monitor) Forked(pid int) []int { return proc.Forked(pid) }

func (m *monitor) Follow(ctx context.Context, name string) error {
	a, err := m.registry.App(name)
	if err != nil {
		return err
	}
	return a.Follow(ctx)
}

func (m *monitor) Release(ctx context.Context, name string, kill bool) error {
	a, err := m.registry.App(name)
	if err != nil {
		return err
	}
	return a.Release(ctx, kill)
}

func (m *monitor) Do(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return m.answer(ctx, name, doc, probes.Options{})
}

func (m *monitor) Explain(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return m.answer(ctx, name, doc, probes.Options{Explain: true})
}

func (m *monitor) answer(ctx context.Context, name string, doc mir.Document, o probes.Options) (mir.Document, error) {
	a, err := m.registry.App(name)
	if err != nil {
		return nil, err
	}
	return a.Answer(ctx, doc, o)
}

// Programs are the files of all the application's processes.
func (m *monitor) Programs(ctx context.Context, name string) ([]string, error) {
	loaded, err := m.loaded(ctx, name)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, module := range loaded {
		if !slices.Contains(paths, module.Path) {
			paths = append(paths, module.Path)
		}
	}
	return paths, nil
}

func (m *monitor) Structure(ctx context.Context, name string, files []string, configured func(file string) bool) (*sir.Structure, string, error) {
	loaded, err := m.loaded(ctx, name)
	if err != nil {
		return nil, "", err
	}
	return m.programs.structure(loaded, files, configured)
}

// loaded lists what the application's living processes have loaded.
func (m *monitor) loaded(ctx context.Context, name string) ([]translate.Module, error) {
	a, err := m.registry.App(name)
	if err != nil {
		return nil, err
	}
	var all []translate.Module
	for _, p := range a.Processes() {
		if p.Gone {
			continue
		}
		modules, err := m.programs.modules(ctx, p.PID)
		if err != nil {
			return nil, err
		}
		all = append(all, modules...)
	}
	return all, nil
}

func (m *monitor) Probes() []gateway.Probe {
	for _, a := range m.registry.Apps() {
		a.Heed(context.Background()) // it asks this machine alone, and returns at once
	}
	var all []gateway.Probe
	for _, p := range m.registry.Probes() {
		all = append(all, describeProbe(p.Status()))
	}
	return all
}

func describeProbe(s probes.Status) gateway.Probe {
	p := gateway.Probe{
		ID: s.ID, App: s.App, State: string(s.State), Region: s.Region, Metrics: s.Metrics,
		Requests: s.Requests, Failure: s.Failure, Gone: s.Gone,
	}
	if len(s.Placements) > 0 { // of several kinds, the dearest is what the target feels
		dearest := slices.MaxFunc(s.Placements, func(a, b mir.Placement) int { return cmp.Compare(a.Cost, b.Cost) })
		p.Placement, p.Why, p.Cost, p.Calibrated = dearest.Where, dearest.Why, mir.Rounded(dearest.Cost, 3), dearest.Measured
		for _, place := range s.Placements {
			p.Bias = max(p.Bias, place.Bias)
		}
	}
	p.Notice = s.Notice
	if c := s.Cost; c != nil {
		p.Spent = &gateway.Spent{
			Hits: c.Hits, Lost: c.Lost, Rate: mir.Rounded(c.Rate, 1), PerHit: mir.Rounded(c.PerHit, 1),
			Share: mir.Rounded(c.Share, 8), Dilation: mir.Rounded(c.Dilation, 6), Budget: mir.Rounded(c.Budget, 8), Rough: c.Rough,
		}
	}
	return p
}

func (m *monitor) Subscribe(id string) (<-chan *mir.Measurement, func(), error) {
	return m.registry.Subscribe(id)
}

func (m *monitor) Catalog() []gateway.Metric {
	var rows []gateway.Metric
	for _, t := range m.registry.Catalog() {
		row := gateway.Metric{Name: t.Name, Unit: t.Unit, Kind: t.Kind, Region: t.Region, What: t.Doc, How: t.Measured}
		for _, kind := range t.Entities {
			row.Entities = append(row.Entities, string(kind))
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *monitor) Schemas() fs.FS { return schemas.Files() }

// Ready is true from join to Close: the gateway serves in between only.
func (m *monitor) Ready() error { return nil }

// programName is what applications are named after, "" if it cannot be known.
func programName(pid int) string {
	if name := proc.TypedName(pid); name != "" {
		return name
	}
	dir := "/proc/" + strconv.Itoa(pid)
	if path, err := os.Readlink(dir + "/exe"); err == nil && path != "" {
		return filepath.Base(path)
	}
	comm, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(comm))
}
