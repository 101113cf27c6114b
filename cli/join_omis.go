package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	gateway "mirador/http"
	"mirador/mir"
	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/linux/prototype"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

// tools are those of the applications and those that POST /omis made, by name.
type tools struct {
	engine *engine.Engine

	mu    sync.Mutex
	byApp map[string]bool
	hubs  map[string]*hub // who listens to the replies of a tool
}

func newTools(e *engine.Engine) *tools {
	return &tools{engine: e, byApp: make(map[string]bool), hubs: make(map[string]*hub)}
}

// ofApp makes the tool of an application. A tool of that name that POST /omis
// made is in its way: they would see each other's objects.
func (t *tools) ofApp(name string) (omis.Tool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hubs[name] != nil && !t.byApp[name] {
		return nil, fmt.Errorf("there is a tool %s; end it first (DELETE /omis/tools/%s), or choose another name", name, name)
	}
	t.byApp[name] = true
	return &appTool{Tool: t.engine.Tool(name), ended: func() { t.forget(name) }}, nil
}

func (t *tools) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byApp, name)
	if h := t.hubs[name]; h != nil {
		h.close()
		delete(t.hubs, name)
	}
}

// appTool gives its name back when it ends.
type appTool struct {
	*engine.Tool
	ended func()
}

func (a *appTool) Finalize() error {
	defer a.ended()
	return a.Tool.Finalize()
}

// placement is where a conditional request of an application's tool runs, or
// would run.
func placement(tool omis.Tool, request string) (mir.Placement, error) {
	t, ok := tool.(*appTool)
	if !ok {
		return mir.Placement{}, fmt.Errorf("%T is no application's tool", tool)
	}
	return inWords(t.Explain(request))
}

// placed is where a conditional request of an application's tool runs that was
// defined.
func placed(tool omis.Tool, request omis.Token) (mir.Placement, error) {
	t, ok := tool.(*appTool)
	if !ok {
		return mir.Placement{}, fmt.Errorf("%T is no application's tool", tool)
	}
	return inWords(t.State(request))
}

// spent is what requests of an application's tool have cost.
func spent(tool omis.Tool, requests []omis.Token) (omis.Spending, error) {
	t, ok := tool.(*appTool)
	if !ok {
		return omis.Spending{}, fmt.Errorf("%T is no application's tool", tool)
	}
	return t.Spent(requests)
}

func inWords(x engine.Explanation, err error) (mir.Placement, error) {
	if err != nil {
		return mir.Placement{}, err
	}
	return mir.Placement{Where: x.Placement.Name, Why: x.Placement.Why, Cost: x.Placement.Cost, Measured: x.Placement.Measured, Bias: float64(x.Bias)}, nil
}

// hub of a tool, made by the first request or the first listener.
func (t *tools) hub(name string) *hub {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hubs[name]
	if h == nil {
		h = &hub{}
		t.hubs[name] = h
		t.engine.Tool(name).HandleErrors(h.send)
	}
	return h
}

// finalize ends a tool that POST /omis made.
func (t *tools) finalize(name string) error {
	t.mu.Lock()
	known := t.hubs[name] != nil && !t.byApp[name]
	t.mu.Unlock()
	if !known {
		return gateway.NewFault(http.StatusNotFound, fmt.Sprintf("there is no tool %q", name))
	}
	err := t.engine.Tool(name).Finalize()
	t.forget(name)
	return err
}

// OMIS sends a request for a tool. All replies but the first go to the listeners; of
// a request that is buffered, all do.
func (m *monitor) OMIS(ctx context.Context, name, request string, flags omis.Flags) (omis.Reply, error) {
	h := m.tools.hub(name)
	if flags&omis.BufferRequest == 0 {
		flags |= omis.WaitForFirstReply
	}
	return m.engine.Tool(name).Request(ctx, request, h.send, flags)
}

// OMISRole reads the table of services.
func (m *monitor) OMISRole(request string) gateway.Role {
	parsed, err := syntax.Parse(request)
	if err != nil {
		return gateway.Read
	}
	switch m.engine.Catalog().RoleOf(parsed) {
	case service.Debug:
		return gateway.Debug
	case service.Control:
		return gateway.Control
	}
	return gateway.Read
}

func (m *monitor) Replies(name string) (<-chan omis.Reply, func(), error) {
	replies, cancel := m.tools.hub(name).join()
	return replies, cancel, nil
}

func (m *monitor) Finalize(name string) error { return m.tools.finalize(name) }

// Describe adds prototypes of library functions.
func (m *monitor) Describe(name, text string) error {
	return m.node.Describe(prototype.File{Name: name, Text: text})
}

// Services lists the table, in the order of the specification.
func (m *monitor) Services() []gateway.Service {
	var rows []gateway.Service
	for _, t := range m.engine.Catalog().Tables() {
		for _, s := range t.Services {
			rows = append(rows, gateway.Service{
				Name: s.Name, Kind: s.Kind.String(), Role: s.Role.String(), Support: s.Support.Level.String(), Local: s.Local,
				Prototype: s.Prototype(), Doc: s.Doc,
			})
		}
	}
	return rows
}

// hub hands the replies of conditional requests, and what belongs to no request, to
// those who listen.
type hub struct {
	mu        sync.Mutex
	listeners []chan omis.Reply
	closed    bool
}

// backlog is how many replies wait for a slow listener. One that is slower yet
// is cut off, so that it knows that it missed something.
const backlog = 1024

func (h *hub) join() (<-chan omis.Reply, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan omis.Reply, backlog)
	if h.closed {
		close(c)
		return c, func() {}
	}
	h.listeners = append(h.listeners, c)
	return c, func() { h.leave(c) }
}

func (h *hub) leave(c chan omis.Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

func (h *hub) drop(c chan omis.Reply) {
	if i := slices.Index(h.listeners, c); i >= 0 {
		h.listeners = slices.Delete(h.listeners, i, i+1)
		close(c)
	}
}

func (h *hub) send(r omis.Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range slices.Clone(h.listeners) {
		select {
		case c <- r:
		default:
			h.drop(c)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, c := range slices.Clone(h.listeners) {
		h.drop(c)
	}
}
