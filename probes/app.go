package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/node"
)

// App is an application: a name, a tool of the monitor, and the processes in its
// scope. So the empty token list of its tool means the whole application.
type App struct {
	name     string
	registry *Registry

	// op is held during a change: one at a time, from its first request to the
	// monitor to its last. What it guards is used by changes alone.
	op       sync.Mutex
	waiting  []*Probe       // not yet flushed, in the order of their requests
	touched  []*Probe       // changed since they were written into the journal
	defaults *mir.Measuring // of requests to come (MIR 4)
	forks    forks

	// mu guards what readers see. It is never held while the monitor is asked.
	mu        sync.RWMutex
	tool      omis.Tool // nil until connected
	node      omis.Token
	processes []Process
	probes    []*Probe // in the order of their requests
	released  bool
	ending    chan struct{} // closed when the next process has terminated; nil: nobody waits
}

// Process is a process of an application.
type Process struct {
	Token   omis.Token
	PID     int
	Start   uint64 // tells it from others of this pid; 0 where no journal is kept
	UID     int
	Argv    []string
	Started bool // by the monitor
	Gone    bool // it has terminated
}

// Name is the application's name.
func (a *App) Name() string { return a.name }

// Processes lists the application's processes, those that terminated included.
func (a *App) Processes() []Process {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.processes)
}

// Probes lists the application's probes in the order of their requests.
func (a *App) Probes() []*Probe {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Clone(a.probes)
}

// The states of an application.
const (
	Running    = "running"
	Terminated = "terminated" // all its processes are gone
	Released   = "released"
)

// State is Running, Terminated or Released.
func (a *App) State() string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch {
	case a.released:
		return Released
	case slices.ContainsFunc(a.processes, func(p Process) bool { return !p.Gone }):
		return Running
	}
	return Terminated
}

// Release removes the application's probes and forgets it. Its processes go on,
// unless kill is set: that ends those that the monitor started.
func (a *App) Release(ctx context.Context, kill bool) error {
	a.op.Lock()
	defer a.op.Unlock()
	if err := a.usable(); err != nil {
		return err
	}
	errs := a.removeAll(ctx, a.Probes())
	if kill {
		errs = append(errs, a.kill(ctx))
	}
	return errors.Join(append(errs, a.close())...)
}

// joined adds processes under the application's lock, and connects it before if
// it was just made. again says that there is no such application any more.
func (a *App) joined(made bool, add func(*App) error) (again bool, err error) {
	a.op.Lock()
	defer a.op.Unlock()
	if a.State() == Released {
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

// close gives the tool and the name back. The monitor detaches from what is
// left in the tool's scope (OMIS 7.1.4). op is held.
func (a *App) close() error {
	a.mu.Lock()
	tool := a.tool
	a.released = true
	a.mu.Unlock()
	a.registry.forget(a)
	err := a.registry.erase(appPrefix + a.name)
	if tool == nil {
		return err
	}
	return errors.Join(err, tool.Finalize())
}

// connect makes the application's tool. op is held.
func (a *App) connect() error {
	tool, err := a.registry.config.Monitor.Tool(a.name)
	if err != nil {
		return failf(Unavailable, "cannot reach the monitor: %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tool = tool
	return nil
}

// usable tells whether the application is still there.
func (a *App) usable() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch {
	case a.released:
		return failf(NotFound, "application %s has been released", a.name)
	case a.tool == nil:
		return failf(Conflict, "application %s is just being started", a.name)
	}
	return nil
}

// markGone remembers that a process has terminated.
func (a *App) markGone(t omis.Token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.processes {
		if a.processes[i].Token == t {
			a.processes[i].Gone = true
		}
	}
	if a.ending != nil {
		close(a.ending)
		a.ending = nil
	}
}

// nextEnd returns a channel that is closed when the next process has terminated.
func (a *App) nextEnd() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending == nil {
		a.ending = make(chan struct{})
	}
	return a.ending
}

// Heed marks the processes that have ended without our having been told: news
// take a moment, and who asks now is to hear what is true now.
func (a *App) Heed(ctx context.Context) {
	var living []string
	for _, p := range a.Processes() {
		if !p.Gone {
			living = append(living, string(p.Token))
		}
	}
	if len(living) == 0 || a.usable() != nil {
		return
	}
	reply, err := a.request(ctx, fmt.Sprintf(": proc_get_info([%s],%#x)", strings.Join(living, ","), node.ProcSchedulingState))
	if err != nil {
		return // what is known stands
	}
	for _, service := range reply {
		for _, r := range service {
			if r.Status == omis.UnknownObject {
				for _, t := range r.Objects {
					a.markGone(t)
				}
			}
		}
	}
}

// gone lists the processes that have terminated.
func (a *App) gone() []omis.Token {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var ts []omis.Token
	for _, p := range a.processes {
		if p.Gone {
			ts = append(ts, p.Token)
		}
	}
	return ts
}

// process finds a process by its token.
func (a *App) process(t omis.Token) (Process, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	i := slices.IndexFunc(a.processes, func(p Process) bool { return p.Token == t })
	if i < 0 {
		return Process{}, false
	}
	return a.processes[i], true
}
