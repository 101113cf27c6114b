package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Engine is the monitor of some nodes. Its methods may be called from any goroutine.
type Engine struct {
	home    *machine   // the machine that the engine runs on
	nodes   []*machine // the home node first
	log     *slog.Logger
	catalog *service.Catalog
	actions map[string]action
	sources map[string]source
	classes map[omis.Class]*service.Class
	reg     *registry
	pid     int // of the monitor itself

	admin   sync.Mutex                         // see the package comment
	placing *placing.Placing                   // guarded by admin
	threads func(proc omis.Token) []omis.Token // service.Occurrence.Threads

	toolsMu sync.Mutex
	tools   map[string]*Tool
	closed  bool
}

// New makes an engine for the machine that it runs on, with extensions (OMIS 6). It fails if extensions
// conflict, or if a table has a service without an implementation.
func New(n program.Machine, log *slog.Logger, extensions ...service.Extension) (*Engine, error) {
	return NewOver([]program.Machine{n}, log, extensions...)
}

// NewOver makes an engine for several nodes. The first node is the machine that the engine runs on. The engine
// executes a request on the nodes of its objects (OMIS 4).
func NewOver(nodes []program.Machine, log *slog.Logger, extensions ...service.Extension) (*Engine, error) {
	e := &Engine{
		log: log, reg: newRegistry(), pid: os.Getpid(),
		classes: make(map[omis.Class]*service.Class), tools: make(map[string]*Tool),
	}
	e.reg.prune, e.threads = e.prune, e.threadsOf
	e.reg.host = func(p *process) placing.ProcessHost { return hosted{e, p} }
	e.placing = placing.New(host{e}, &e.admin, log)
	tables := make([]service.Table, len(extensions))
	for i, x := range extensions {
		tables[i] = service.Table{Prefix: x.Prefix(), Services: x.Services()}
		for _, c := range x.Classes() {
			tables[i].Classes = append(tables[i].Classes, c.Class)
			e.classes[c.Class] = &c
		}
	}
	var err error
	if e.catalog, err = service.NewCatalog(tables...); err != nil {
		return nil, err
	}
	e.actions, e.sources = e.basicActions(), e.basicSources()
	for _, table := range tables {
		e.adopt(table)
	}
	if err := e.complete(); err != nil {
		return nil, err
	}
	if err := e.join(nodes, extensions); err != nil {
		return nil, err
	}
	e.catalog = e.catalog.Without(e.lacking())
	return e, nil
}

// adopt takes the implementations from the table of an extension.
func (e *Engine) adopt(table service.Table) {
	for i := range table.Services {
		s := &table.Services[i]
		if s.Action != nil {
			a := action{each: extensionAction(s.Action), local: s.Action, compile: s.Compile, leads: true, crowded: s.Kind == service.Information}
			if s.Collect != nil {
				a.batch = collecting(s.Collect)
			}
			e.actions[s.Name] = a
		}
		if s.Source != nil || s.Event != 0 {
			src := source{kind: s.Event, open: s.Source}
			if s.Event == node.EventReachedAddr {
				src.address, src.when = 1, 2
			}
			e.sources[s.Name] = src
		}
	}
}

// complete checks that the table and the implementations have the same names.
func (e *Engine) complete() error {
	var errs []error
	known := make(map[string]bool)
	for _, t := range e.catalog.Tables() {
		for i := range t.Services {
			s := &t.Services[i]
			known[s.Name] = true
			_, acts := e.actions[s.Name]
			_, detects := e.sources[s.Name]
			supported := s.Support.Level != service.Unsupported
			if supported != (acts || detects) || detects && s.Kind != service.Event || acts && s.Kind == service.Event {
				errs = append(errs, fmt.Errorf("service %s is %s in the table, but its implementation says otherwise", s.Name, s.Support.Level))
			}
		}
	}
	for name := range e.actions {
		if !known[name] {
			errs = append(errs, fmt.Errorf("action %s is not in the table", name))
		}
	}
	for name := range e.sources {
		if !known[name] {
			errs = append(errs, fmt.Errorf("event %s is not in the table", name))
		}
	}
	return errors.Join(errs...)
}

// Catalog returns the table of all services of this monitor.
func (e *Engine) Catalog() *service.Catalog { return e.catalog }

// Tool returns the tool with a name, and makes it if necessary. A tool that was finalized leaves its name
// free.
func (e *Engine) Tool(name string) *Tool {
	e.toolsMu.Lock()
	defer e.toolsMu.Unlock()
	if t := e.tools[name]; t != nil {
		return t
	}
	t := newTool(e, name)
	if e.closed {
		t.finalized = true
	}
	e.tools[name] = t
	return t
}

// Close finalizes all tools. It does not close the nodes.
func (e *Engine) Close(context.Context) error {
	e.toolsMu.Lock()
	e.closed = true
	e.toolsMu.Unlock()
	var errs []error
	for _, t := range e.allTools() {
		errs = append(errs, t.Finalize())
	}
	e.admin.Lock()
	defer e.admin.Unlock()
	e.placing.Close()
	return errors.Join(errs...)
}

// now reads the clock for time stamps of events.
func (e *Engine) now() int64 { return e.home.Now() }
