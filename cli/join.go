package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/cli/possible"
	gateway "mirador/http"
	"mirador/mir"
	"mirador/mir/api"
	"mirador/omis"
	"mirador/omis/host/locks"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/node"
	"mirador/omis/place/calibrate"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/probes/journal"
	"mirador/probes/native"
	"mirador/schemas"
	"mirador/sir"
	"mirador/sir/source"
	"mirador/sir/source/apart"
)

// backend contains everything below the gateway: the monitor, and the applications with their
// probes. Its methods may be called from any goroutine.
type backend struct {
	monitor  *monitor.Monitor
	runtime  *native.Runtime
	registry *probes.Registry
	tools    *tools
}

var _ gateway.Backend = (*backend)(nil)

// placers returns the placements that the settings allow, cheapest first.
func (s settings) placers(node *linux.Node, log *slog.Logger, j *journal.Journal) (list []program.Placer) {
	if s.mayPlace(inline.Name) {
		list = append(list, inline.New(node))
	}
	if s.mayPlace(kernel.Name) {
		inKernel := kernel.NewKeeper(registrarSelf(), s.Data, j)
		inKernel.DateBy(node.Now)
		inKernel.CheckBy(node.Boundaries)
		inKernel.NoticeBy(func(message string) { log.Warn(message) })
		list = append(list, inKernel)
	}
	return list
}

// join opens a monitor, and a registry of applications above it. The caller closes the
// journal, after the backend.
func join(s settings, log *slog.Logger, j *journal.Journal) (*backend, error) {
	m, err := monitor.Open(monitor.Config{
		Linux: linux.Config{
			Name: s.Node, Warden: []string{"/proc/self/exe", wardenCommand},
			Prototypes: s.Prototypes, Checkpoints: s.checkpoints(), Ptrace: s.Hold == holdByPtrace, Sharing: s.Prefer == preferSharing,
		},
		Placers: func(node *linux.Node) []program.Placer { return s.placers(node, log, j) },
		Costs:   &calibrate.Config{File: s.costs(), Beside: s.Calibrate == calibrateAtStart, Log: log},
		Log:     log,
	})
	if err != nil {
		return nil, err
	}
	b := &backend{monitor: m, runtime: native.New(m.Linux, debugFiles()), tools: newTools(m.Engine, s.lease)}
	recallEngine(j, m.Engine, log)
	b.registry = probes.New(probes.Config{
		Node: s.Node, Site: s.Site, Monitor: applications{b.tools, m}, Runtime: b.runtime, Lacks: b.lacks, Journal: j, Destinations: s.Deliver,
		Epoch: epoch(m.Linux), Log: log, Outline: outline(apart.NewReader(sourcesSelf(), s.Parser)),
	})
	return b, nil
}

// outline returns a function that reads one source in a process of its own.
func outline(r *apart.Reader) func(ctx context.Context, program, path string, text []byte) (sir.Program, error) {
	return func(ctx context.Context, program, path string, text []byte) (sir.Program, error) {
		return r.Read(ctx, program, []source.Resource{{In: path, Path: path, Text: text}})
	}
}

// epoch returns what the kernel's monotonic clock showed when the node's clock showed 0. It takes
// the reading that took least time.
func epoch(n *linux.Node) (at int64) {
	least := int64(math.MaxInt64)
	for range 16 {
		var t unix.Timespec
		before := n.Now()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock exists
		if took := n.Now() - before; took < least {
			least, at = took, t.Nano()-before-took/2
		}
	}
	return at
}

// applications is the monitor in the form that the package probes needs.
type applications struct {
	*tools
	monitor *monitor.Monitor
}

var _ probes.Monitor = applications{}

func (a applications) Identify(pid int) (omis.ProcID, error) { return a.monitor.Node.Identify(pid) }
func (a applications) Settle() ([]program.Orphan, error)     { return a.monitor.Engine.Settle() }
func (a applications) RecallProcess(id omis.ProcID, token omis.Token) {
	a.monitor.Engine.RecallProcess(id, token)
}

// calibrate measures what probes cost, unless the data directory contains the result already, and
// again while the machine is too busy. It returns early when the monitor closes.
func (b *backend) calibrate(log *slog.Logger) {
	begin := time.Now()
	if b.monitor.CalibrateAll() {
		log.Info("measured what probes cost on this machine", "seconds", time.Since(begin).Seconds())
	}
	b.monitor.RefineCosts(10 * time.Second)
}

// Close releases everything, from the top down.
func (b *backend) Close(ctx context.Context) error {
	b.tools.endLeases()
	return errors.Join(b.registry.Close(ctx), b.monitor.Close(ctx))
}

func (b *backend) Apps() []gateway.App {
	var apps []gateway.App
	for _, a := range b.registry.Apps() {
		apps = append(apps, a.Status())
	}
	return apps
}

func (b *backend) Launch(ctx context.Context, name string, l node.Launch, pause *probes.Pause) (gateway.App, error) {
	a, err := b.registry.Run(ctx, name, l, pause)
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (b *backend) Continue(ctx context.Context, name string) (gateway.App, error) {
	a, err := b.registry.App(name)
	if err == nil {
		err = a.Continue(ctx)
	}
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (b *backend) Attach(ctx context.Context, name string, pids []int) (gateway.App, error) {
	a, err := b.registry.Attach(ctx, name, pids)
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (b *backend) Create(name string, owner int) (gateway.App, error) {
	a, err := b.registry.Create(name, owner)
	if err != nil {
		return gateway.App{}, err
	}
	return a.Status(), nil
}

func (b *backend) Weave(ctx context.Context, name string, s probes.Sources) error {
	return b.registry.Weave(ctx, name, s)
}

func (b *backend) NameSources(name string, files []string) error {
	return b.registry.NameSources(name, files)
}

func (b *backend) WovenFor(path string, pid int) []string { return b.registry.WovenFor(path, pid) }

func (b *backend) Forked(pid int) []int { return proc.Forked(pid) }

func (b *backend) Follow(ctx context.Context, name string) error {
	a, err := b.registry.App(name)
	if err != nil {
		return err
	}
	return a.Follow(ctx)
}

func (b *backend) Release(ctx context.Context, name string, kill bool) error {
	a, err := b.registry.App(name)
	if err != nil {
		return err
	}
	return a.Release(ctx, kill)
}

func (b *backend) Do(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return b.answer(ctx, name, doc, probes.Options{})
}

func (b *backend) Explain(ctx context.Context, name string, doc mir.Document) (mir.Document, error) {
	return b.answer(ctx, name, doc, probes.Options{Explain: true})
}

func (b *backend) answer(ctx context.Context, name string, doc mir.Document, o probes.Options) (mir.Document, error) {
	a, err := b.registry.App(name)
	if err != nil {
		return nil, err
	}
	return a.Answer(ctx, doc, o)
}

// Programs returns the files that the application's processes have loaded.
func (b *backend) Programs(ctx context.Context, name string) ([]string, error) {
	pids, err := b.living(name)
	if err != nil {
		return nil, err
	}
	return b.runtime.Files(ctx, pids)
}

// Loaded returns the files that one process of the application has loaded.
func (b *backend) Loaded(ctx context.Context, name, process string) ([]string, error) {
	a, err := b.registry.App(name)
	if err != nil {
		return nil, err
	}
	var living []string
	for _, p := range a.Processes() {
		switch {
		case p.Gone:
		case process == string(p.Token) || process == strconv.Itoa(p.PID):
			return b.runtime.Files(ctx, []int{p.PID})
		default:
			living = append(living, fmt.Sprintf("%s (pid %d)", p.Token, p.PID))
		}
	}
	return nil, fmt.Errorf("application %s has no process %s: it has %s", name, process, strings.Join(living, ", "))
}

func (b *backend) Structure(ctx context.Context, name string, files []string, configured func(file string) bool) (*sir.Structure, string, error) {
	pids, err := b.living(name)
	if err != nil {
		return nil, "", err
	}
	return b.runtime.Structure(ctx, pids, files, configured)
}

func (b *backend) Inside(ctx context.Context, name string, s *sir.Structure) (*sir.Structure, error) {
	pids, err := b.living(name)
	if err != nil {
		return nil, err
	}
	return b.runtime.Inside(ctx, pids, s)
}

func (b *backend) FindPlacements(ctx context.Context, name string, s *sir.Structure) error {
	pids, err := b.living(name)
	if err != nil {
		return err
	}
	images, err := b.runtime.Images(ctx, pids, s)
	if err != nil {
		return err
	}
	return possible.New(b.monitor.Linux.Codes()).FindAll(ctx, images, s)
}

// living returns the pids of the living processes of an application.
func (b *backend) living(name string) ([]int, error) {
	a, err := b.registry.App(name)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range a.Processes() {
		if !p.Gone {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

// Locks lists the locks for which threads of an application wait. Processes that end meanwhile have
// none.
func (b *backend) Locks(_ context.Context, name string) ([]api.Lock, error) {
	a, err := b.registry.App(name)
	if err != nil {
		return nil, err
	}
	all := []api.Lock{}
	for _, p := range a.Processes() {
		if p.Gone {
			continue
		}
		found, err := locks.Of(p.PID)
		if err != nil {
			continue
		}
		for _, l := range found {
			all = append(all, api.Lock{Process: p.Token, PID: p.PID, Address: fmt.Sprintf("%#x", l.Addr), Holder: l.Holder, Waiting: l.Waiting})
		}
	}
	return all, nil
}

func (b *backend) Probes() []gateway.Probe {
	for _, a := range b.registry.Apps() {
		a.Heed(context.Background()) // only asks this machine, and so returns quickly
	}
	var all []gateway.Probe
	for _, p := range b.registry.Probes() {
		all = append(all, p.Status())
	}
	return all
}

func (b *backend) Probe(id string) (gateway.Probe, bool) {
	p, err := b.registry.Probe(id)
	if err != nil {
		return gateway.Probe{}, false
	}
	p.App().Heed(context.Background()) // as in Probes
	return p.Status(), true
}

func (b *backend) Labelled(ctx context.Context, apps []string) []probes.Labelled {
	return b.registry.Labelled(ctx, apps)
}

func (b *backend) CountProbes() int { return b.registry.CountProbes() }

func (b *backend) Subscribe(id string, after uint64) (<-chan deliver.Event, func(), error) {
	return b.registry.Subscribe(id, after)
}

func (b *backend) Trace(id string) (<-chan probes.TracedBatch, func(), error) {
	return b.registry.Trace(id)
}

func (b *backend) Schemas() fs.FS { return schemas.Files() }

// Ready returns nil: the gateway serves only between join and Close.
func (b *backend) Ready() error { return nil }
