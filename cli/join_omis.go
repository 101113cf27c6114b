package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mirador/cli/replies"
	gateway "mirador/http"
	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/host/prototype"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

// tools contains the tools of applications and the tools that POST /omis created, by name.
type tools struct {
	engine *engine.Engine

	mu    sync.Mutex
	byApp map[string]bool
	logs  map[string]*replies.Log // replies to conditional requests

	lease  time.Duration // 0: none
	leases map[string]*lease
}

func newTools(e *engine.Engine, after time.Duration) *tools {
	return &tools{engine: e, byApp: make(map[string]bool), logs: make(map[string]*replies.Log), lease: after, leases: make(map[string]*lease)}
}

// Tool creates the tool of an application. It fails if POST /omis has created a tool of that name,
// because the two would see each other's objects.
func (t *tools) Tool(name string) (omis.Tool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logs[name] != nil && !t.byApp[name] {
		return nil, fmt.Errorf("there is a tool %s; end it first (DELETE /omis/tools/%s), or choose another name", name, name)
	}
	t.byApp[name] = true
	return &appTool{Tool: t.engine.Tool(name), ended: func() { t.forget(name) }}, nil
}

func (t *tools) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byApp, name)
	if h := t.logs[name]; h != nil {
		h.Close()
		delete(t.logs, name)
	}
	if l := t.leases[name]; l != nil {
		l.end()
		delete(t.leases, name)
	}
}

// appTool frees its name when it ends.
type appTool struct {
	*engine.Tool
	ended func()
}

func (a *appTool) Finalize() error {
	defer a.ended()
	return a.Tool.Finalize()
}

// log returns the log and the lease of a tool. The first request or stream creates them. The lease
// is nil if tools have none.
func (t *tools) log(name string) (*replies.Log, *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.logs[name]
	if h == nil {
		h = replies.New(replies.Usual)
		t.logs[name] = h
		t.engine.Tool(name).HandleErrors(h.Add)
		if t.lease > 0 {
			t.leases[name] = newLease(t.engine.Tool(name), h, t.lease)
		}
	}
	return h, t.leases[name]
}

// list returns the tools, sorted by name.
func (t *tools) list() []gateway.Tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]gateway.Tool)
	for name := range t.byApp {
		all[name] = gateway.Tool{Name: name, Application: true}
	}
	for name, log := range t.logs {
		all[name] = gateway.Tool{Name: name, Application: t.byApp[name], Streams: log.Streams()}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b gateway.Tool) int { return strings.Compare(a.Name, b.Name) })
}

// finalize ends a tool that POST /omis created.
func (t *tools) finalize(name string) error {
	t.mu.Lock()
	known := t.logs[name] != nil && !t.byApp[name]
	t.mu.Unlock()
	if !known {
		return gateway.NewFault(http.StatusNotFound, fmt.Sprintf("there is no tool %q", name))
	}
	err := t.engine.Tool(name).Finalize()
	t.forget(name)
	return err
}

// OMIS sends a request for a tool. The first reply is returned and all others go to the tool's
// stream. All replies to a buffered request go to the stream.
func (b *backend) OMIS(ctx context.Context, name, request string, flags omis.Flags) (omis.Reply, error) {
	h, lease := b.tools.log(name)
	defer lease.use()()
	if flags&omis.BufferRequest == 0 {
		flags |= omis.WaitForFirstReply
	}
	return b.monitor.Engine.Tool(name).Request(ctx, request, h.Add, flags)
}

// OMISRole returns the role that a request needs, according to the table of services.
func (b *backend) OMISRole(request string) gateway.Role {
	parsed, err := syntax.Parse(request)
	if err != nil {
		return gateway.Read
	}
	switch b.monitor.Engine.Catalog().RoleOf(parsed) {
	case service.Debug:
		return gateway.Debug
	case service.Control:
		return gateway.Control
	}
	return gateway.Read
}

func (b *backend) Replies(name string, after uint64) (<-chan gateway.StreamedReply, func(), error) {
	log, lease := b.tools.log(name)
	used := lease.use()
	entries, cancel := log.Stream(after)
	return entries, sync.OnceFunc(func() { cancel(); used() }), nil
}

// Tools lists the tools of applications and those that POST /omis created.
func (b *backend) Tools() []gateway.Tool { return b.tools.list() }

func (b *backend) Finalize(name string) error { return b.tools.finalize(name) }

// Describe adds prototypes of library functions.
func (b *backend) Describe(name, text string) error {
	return b.monitor.Linux.Describe(prototype.File{Name: name, Text: text})
}

// Services lists the services that this machine supports, in the order of the specification.
func (b *backend) Services() (all []service.Service) {
	for _, t := range b.monitor.Engine.Available().Tables() {
		all = append(all, t.Services...)
	}
	return all
}
