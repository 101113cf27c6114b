package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mirador/mir"
	"mirador/mir/api"
	"mirador/omis"
	"mirador/omis/node"
)

// App is an application: a name, a tool of the monitor, and the processes in the scope of
// that tool.
type App struct {
	name      string
	registry  *Registry
	tool      connection
	processes processes
	clock     clock

	// op is held during a change, from its first request to the monitor to its last. Only
	// changes use the fields that it guards.
	op       sync.Mutex
	waiting  []*Probe       // not yet flushed, in the order of their requests
	touched  []*Probe       // changed since they were written to the journal
	defaults *mir.Measuring // of later requests (MIR 4)
	forks    forks
	loads    loads
	pauses   pauses
	weaving  weaving
	branches branches

	// mu guards what readers use. It is never held during a request to the monitor.
	mu       sync.RWMutex
	node     omis.Token
	probes   []*Probe // in the order of their requests
	released bool
}

func newApp(name string, r *Registry) *App {
	a := &App{name: name, registry: r}
	a.forks.app, a.loads.app, a.pauses.app, a.clock.app, a.weaving.app, a.branches.app = a, a, a, a, a, a
	return a
}

// Name returns the application's name.
func (a *App) Name() string { return a.name }

// Processes lists the application's processes, including the terminated ones.
func (a *App) Processes() []Process { return a.processes.list() }

// Probes lists the application's probes in the order of their requests.
func (a *App) Probes() []*Probe {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.probes)
}

// The states of an application.
const (
	Empty      = "empty" // no process has joined yet
	Running    = "running"
	Paused     = "paused"     // a process waits to be continued for the first time
	Terminated = "terminated" // all its processes have terminated
	Released   = "released"
)

// State returns Empty, Running, Paused, Terminated or Released.
func (a *App) State() string {
	switch {
	case a.isReleased():
		return Released
	case len(a.processes.list()) == 0:
		return Empty
	case len(a.processes.paused()) > 0:
		return Paused
	case len(a.processes.living()) > 0:
		return Running
	}
	return Terminated
}

func (a *App) isReleased() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.released
}

// AppStatus describes an application.
type AppStatus = api.App

// Status returns the state of the application.
func (a *App) Status() AppStatus {
	s := AppStatus{Name: a.name, State: a.State(), Processes: append([]Process{}, a.processes.list()...)} // an empty list, unlike nil, is [] in JSON
	a.mu.RLock()
	s.Owner = a.weaving.owner
	a.mu.RUnlock()
	for i, p := range s.Processes {
		switch {
		case i == 0:
			s.Owner = p.UID
		case s.Owner != p.UID:
			s.Owner = 0
		}
	}
	a.pauses.describe(&s)
	return s
}

// Release removes the application and its probes. Its processes continue; with kill, those
// that the monitor started end.
func (a *App) Release(ctx context.Context, kill bool) error {
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return err
	}
	errs := a.removeAll(ctx, a.Probes())
	if kill {
		errs = append(errs, a.kill(ctx))
	} else {
		errs = append(errs, a.pauses.end(ctx)) // another tool of the processes would not continue them
	}
	return errors.Join(append(errs, a.close())...)
}

// joined adds processes under the application's lock; it connects a new application first.
// It reports again if the application has been released in the meantime.
func (a *App) joined(made bool, add func(*App) error) (again bool, err error) {
	a.op.Lock()
	defer a.op.Unlock()
	if a.isReleased() {
		return true, nil
	}
	if made {
		err = a.connect()
	}
	if err == nil {
		err = add(a)
	}
	if err == nil {
		err = errors.Join(a.writeSelf(), a.writeDown())
	}
	if err != nil && made {
		err = errors.Join(err, a.close())
	}
	return false, err
}

// close finalizes the tool and frees the name. The monitor detaches from all objects in the
// tool's scope (OMIS 7.1.4). The caller holds op.
func (a *App) close() error {
	a.mu.Lock()
	a.released = true
	a.mu.Unlock()
	a.pauses.lease.stop()
	a.weaving.drop()
	a.registry.forget(a)
	err := a.registry.erase(appPrefix + a.name)
	if tool := a.tool.connected(); tool != nil {
		err = errors.Join(err, tool.Finalize())
	}
	return err
}

// connect creates the application's tool. The caller holds op.
func (a *App) connect() error {
	tool, err := a.registry.config.Monitor.Tool(a.name)
	if err != nil {
		return failf(Unavailable, "cannot reach the monitor: %v", err)
	}
	a.tool.connect(tool)
	return nil
}

// usable returns an error if the application takes no requests.
func (a *App) usable() error {
	switch {
	case a.isReleased():
		return failf(NotFound, "application %s has been released", a.name)
	case a.tool.connected() == nil:
		return failf(Conflict, "application %s is just being started", a.name)
	}
	return nil
}

// Heed asks the monitor which processes have terminated. The event of an end arrives a moment
// after the end, but the answer to a caller must include ends that happened before its request.
func (a *App) Heed(ctx context.Context) {
	var living []string
	for _, token := range a.processes.living() {
		living = append(living, string(token))
	}
	if len(living) == 0 || a.usable() != nil {
		return
	}
	reply, err := a.tool.request(ctx, fmt.Sprintf(": proc_get_info([%s],%#x)", strings.Join(living, ","), node.ProcSchedulingState))
	if err != nil {
		return
	}
	for _, service := range reply {
		for _, r := range service {
			if r.Status == omis.UnknownObject {
				for _, t := range r.Objects {
					a.processes.markGone(t)
				}
			}
		}
	}
}
