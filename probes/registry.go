package probes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/probes/deliver"
)

// Registry holds the applications of a gateway. Its lock guards only the maps of names, and is
// never held during a request to the monitor.
type Registry struct {
	config Config
	queues *deliver.Queues

	keys keys

	restoring atomic.Bool // Restore is running

	delayed []func() // what Restore does at its end

	relieving sync.WaitGroup // probes that are being deactivated because they exceeded their budgets

	mu     sync.Mutex
	apps   map[string]*App
	probes map[string]*Probe
	issued int // number of the newest probe; no number is used twice

	woven wovenBytes
}

// New returns an empty registry.
func New(c Config) *Registry {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var saved deliver.Store
	if c.Journal != nil {
		saved = c.Journal
	}
	r := &Registry{config: c, queues: deliver.OpenQueues(c.Destinations, saved, c.Log), apps: make(map[string]*App), probes: make(map[string]*Probe)}
	r.keys = keys{registry: r, known: make(map[string]*keyed), byCaller: make(map[string]int)}
	return r
}

// Apps lists the applications in the order of their names.
func (r *Registry) Apps() []*App {
	r.mu.Lock()
	defer r.mu.Unlock()
	apps := make([]*App, 0, len(r.apps))
	for _, a := range r.apps {
		apps = append(apps, a)
	}
	slices.SortFunc(apps, func(a, b *App) int { return cmp.Compare(a.name, b.name) })
	return apps
}

// App finds an application by its name.
func (r *Registry) App(name string) (*App, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.apps[name]; a != nil {
		return a, nil
	}
	return nil, failf(NotFound, "no application %s; %s", name, r.names())
}

// Only returns the application for requests that name none.
func (r *Registry) Only() (*App, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch len(r.apps) {
	case 1:
		for _, a := range r.apps {
			return a, nil
		}
	case 0:
		return nil, failf(NotFound, "no application: start one with \"mirador run\" or \"mirador attach\"")
	}
	return nil, failf(Conflict, "several applications, name one in the path, /apps/NAME/mir: %s", r.names())
}

func (r *Registry) names() string {
	if len(r.apps) == 0 {
		return "there is none"
	}
	var names []string
	for name := range r.apps {
		names = append(names, name)
	}
	slices.Sort(names)
	return "there are " + strings.Join(names, ", ")
}

// Run starts a program. With a name, its process joins the application of that name; otherwise
// it becomes an application that is named after the program. If pause is not nil, the program
// waits for Continue before it runs anything of its own.
func (r *Registry) Run(ctx context.Context, name string, l node.Launch, pause *Pause) (*App, error) {
	weaves, token := r.weaves(), omis.Token("")
	a, err := r.join(name, path.Base(l.Path), func(a *App) (err error) {
		token, err = a.launch(ctx, l, pause, weaves)
		return err
	})
	if err != nil || !weaves {
		return a, err
	}
	if p, ok := a.processes.find(token); ok {
		r.joinWoven(ctx, a, p)
	}
	if pause == nil {
		err = a.tool.do(ctx, fmt.Sprintf(": thread_continue([%s])", token))
	}
	return a, err
}

// Attach adds running processes to the application of a name, which it creates if there is none.
// If one process fails, it adds none.
func (r *Registry) Attach(ctx context.Context, name string, pids []int) (*App, error) {
	if len(pids) == 0 {
		return nil, failf(Invalid, "no process to attach to")
	}
	program := r.config.Runtime.Name(pids[0])
	if program == "" {
		program = fmt.Sprintf("pid-%d", pids[0])
	}
	a, err := r.join(name, program, func(a *App) error { return a.attach(ctx, pids) })
	if err == nil && r.weaves() {
		for _, p := range a.processes.list() {
			if slices.Contains(pids, p.PID) && !p.Gone {
				r.joinWoven(ctx, a, p)
			}
		}
	}
	return a, err
}

// join adds processes to an application. It releases a new application if that fails.
func (r *Registry) join(name, program string, add func(*App) error) (*App, error) {
	for {
		a, made, err := r.open(name, program)
		if err != nil {
			return nil, err
		}
		again, err := a.joined(made, add)
		switch {
		case again: // it was released while joined waited for its lock
			continue
		case err != nil:
			return nil, err
		}
		return a, nil
	}
}

// open finds the application, or adds a new one under the name.
func (r *Registry) open(name, program string) (a *App, made bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == "" {
		name = r.unique(program)
	}
	if !validName(name) {
		return nil, false, failf(Invalid, "%q cannot be the name of an application: letters, digits, \".\", \"_\" and \"-\" can", name)
	}
	if a := r.apps[name]; a != nil {
		return a, false, nil
	}
	a = newApp(name, r)
	r.apps[name] = a
	return a, true, nil
}

// unique returns the program's name, with a number if it is taken.
func (r *Registry) unique(program string) string {
	base := strings.Map(func(c rune) rune {
		if validRune(c) {
			return c
		}
		return '_'
	}, program)
	name := base
	for n := 2; r.apps[name] != nil; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// validName reports whether a name can be part of a URL's path.
func validName(name string) bool {
	return name != "" && strings.Trim(name, ".") != "" && len(name) <= 64 &&
		!strings.ContainsFunc(name, func(c rune) bool { return !validRune(c) })
}

func validRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)
}

// Probes lists the probes of all applications in the order of their numbers.
func (r *Registry) Probes() []*Probe {
	r.mu.Lock()
	defer r.mu.Unlock()
	ps := make([]*Probe, 0, len(r.probes))
	for _, p := range r.probes {
		ps = append(ps, p)
	}
	slices.SortFunc(ps, func(a, b *Probe) int { return cmp.Compare(a.number, b.number) })
	return ps
}

// CountProbes counts the probes of all applications.
func (r *Registry) CountProbes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.probes)
}

// Probe finds a probe by its id, which is a use of it: its lease counts from now on.
func (r *Registry) Probe(id string) (*Probe, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.probes[id]; p != nil {
		p.renew()
		return p, nil
	}
	return nil, failf(NotFound, "no probe %s", id)
}

// enter adds a new probe and assigns its id.
func (r *Registry) enter(p *Probe) error {
	r.name(p)
	return r.write(issuedKey, p.number)
}

func (r *Registry) name(p *Probe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.issued++
	p.number = r.issued
	p.id = probeID(r.issued)
	r.probes[p.id] = p
}

func probeID(number int) string { return fmt.Sprintf("probe-%d", number) }

func (r *Registry) drop(p *Probe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.probes, p.id)
}

func (r *Registry) forget(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.apps[a.name] == a {
		delete(r.apps, a.name)
	}
}

// Close releases all applications; their processes continue.
func (r *Registry) Close(ctx context.Context) error {
	var errs []error
	for _, a := range r.Apps() {
		errs = append(errs, a.Release(ctx, false))
	}
	r.relieving.Wait()
	return errors.Join(append(errs, r.queues.Close(ctx))...)
}

// Subscribe returns a stream of the measurement documents that a probe delivers, from the one
// after an earlier stream's event on; after is 0 for a new reader. The stream is closed when
// cancel is called or the probe is removed.
func (r *Registry) Subscribe(id string, after uint64) (documents <-chan deliver.Event, cancel func(), err error) {
	p, err := r.Probe(id)
	if err != nil {
		return nil, nil, err
	}
	if _, w := p.now(); w != nil && pace(w.times) == 0 {
		return nil, nil, failf(Conflict, "%s delivers nothing by itself: give it a <measuring delivery=\"1000\"/> (milliseconds), by a ctrlreq with ACTIVATE for instance", id)
	}
	documents, cancel, ok := p.outlet.Listen(after)
	if !ok {
		return nil, nil, failf(NotFound, "%s has been removed", id)
	}
	// The probe closes its streams once, when the last process ends: a later stream would stay
	// open. This test must come after Listen.
	if _, w := p.now(); w != nil && w.plan.Outlived(p.app.processes.gone()) {
		cancel()
		return nil, nil, failf(Conflict, "all processes that %s measured have terminated: it delivers nothing any more; VALUE answers what it has measured", id)
	}
	return documents, cancel, nil
}
