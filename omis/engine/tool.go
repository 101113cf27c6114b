package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/syntax"
)

// Tool is a tool's connection to the engine: its scope, its requests, its replies. It may be used from any
// goroutine.
type Tool struct {
	e       *Engine
	name    string
	replies delivery
	later   *queue // requests that are answered by callback, in order
	raised  *queue // user events that no list waits for

	// hidden are the threads that the tool detached from, nil if there are none. Each hit reads it.
	hidden atomic.Pointer[map[omis.Token]bool]

	prepared  prepared
	imaginary bool // it is a scratch tool of Explain, and tokens of extensions name its own objects

	mu        sync.Mutex // guards the fields below; held for moments
	nodes     []*machine
	procs     []*process
	csrs      []*csr
	items     map[omis.Class][]*item
	events    []*userEvent
	buffered  []func()
	onError   *sink
	finalized bool
	suspended map[*thread]int // what this tool has to resume
}

var _ omis.Tool = (*Tool)(nil)

func newTool(e *Engine, name string) *Tool {
	return &Tool{e: e, name: name, later: newQueue(maxPending), raised: newQueue(maxPending),
		items: make(map[omis.Class][]*item), suspended: make(map[*thread]int)}
}

// Name returns the name of the tool.
func (t *Tool) Name() string { return t.name }

// HandleErrors sets the function that gets errors that belong to no request, and debugging output (OMIS
// 7.1.3). It is called like a request's callback.
func (t *Tool) HandleErrors(handle func(omis.Reply)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onError = &sink{callback: handle}
}

// Request sends one request: see omis.Tool. Requests with a callback are executed one after the other. A
// request that waits for its reply does not wait for them.
func (t *Tool) Request(ctx context.Context, text string, callback func(omis.Reply), flags omis.Flags) (omis.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	to := &sink{callback: callback, flags: flags}
	wait := callback == nil || flags&omis.WaitForFirstReply != 0
	if !wait && flags&omis.BufferRequest != 0 {
		return nil, t.buffer(func() { t.replies.push(to, t.execute(text, to, nil)) })
	}
	earlier, err := t.unbuffer()
	if err != nil {
		return nil, err
	}
	if wait {
		for _, f := range earlier {
			f()
		}
		return t.execute(text, to, nil), nil
	}
	for _, f := range earlier {
		t.later.push(f, true)
	}
	if !t.later.push(func() { t.replies.push(to, t.execute(text, to, nil)) }, false) {
		return nil, omis.Errorf(omis.NoMemory, "tool %s has %d requests waiting: wait for replies before sending more", t.name, maxPending)
	}
	return nil, nil
}

// buffer keeps a request until the next one that is not buffered.
func (t *Tool) buffer(f func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finalized {
		return t.gone()
	}
	t.buffered = append(t.buffered, f)
	return nil
}

func (t *Tool) unbuffer() ([]func(), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finalized {
		return nil, t.gone()
	}
	earlier := t.buffered
	t.buffered = nil
	return earlier, nil
}

func (t *Tool) gone() error {
	return omis.Errorf(omis.UnspecifiedError, "tool %s was finalized", t.name)
}

// execute executes an unconditional request, or defines a conditional one. outer is the execution in which
// an extension made the request.
func (t *Tool) execute(text string, to *sink, outer *execution) omis.Reply {
	p, refused := t.prepare(text)
	if refused != nil {
		return refused
	}
	r := p.request
	if to.flags&omis.Debug != 0 {
		t.debug(r)
	}
	if r.Event != nil {
		return t.define(r, to)
	}
	x := (&execution{e: t.e, toolScope: toolScope{t}, locked: r.Locked}).within(outer)
	if outer != nil {
		x.occ = outer.occ // a request of an extension has the same event as the outer list
	}
	reply := make(omis.Reply, 1, len(p.steps)+1)
	reply[0] = omis.ServiceResult{done()}
	reply = x.run(reply, p.steps)
	x.runAfter()
	return reply
}

// prepare parses and checks a request, unless it was sent lately. refused is the reply if it has errors.
func (t *Tool) prepare(text string) (p ready, refused omis.Reply) {
	if p, ok := t.prepared.get(text); ok {
		return p, nil
	}
	r, err := syntax.Parse(text)
	if faults := t.e.check(r); err != nil || len(faults) > 0 {
		return p, refusal(err, faults)
	}
	p = ready{request: r}
	if r.Event == nil {
		p.steps = t.e.steps(r.Actions)
		t.prepared.put(text, p)
	}
	return p, nil
}

// nested executes a request that an extension makes while it executes an action.
func (t *Tool) nested(ctx context.Context, text string, to *sink, outer *execution) (omis.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.execute(text, to, outer), nil
}

// steps looks up actions that were checked.
func (e *Engine) steps(calls []omis.Call) []step {
	list := make([]step, len(calls))
	for i := range calls {
		s := e.catalog.Lookup(calls[i].Service)
		list[i] = step{
			service: s, do: e.actions[s.Name], args: calls[i].Args,
			subject: s.Subject(), params: hasParams(calls[i].Args), pos: calls[i].Pos,
			barrier: calls[i].Barrier,
		}
	}
	return list
}

func hasParams(vs []omis.Value) bool {
	for i := range vs {
		if vs[i].Kind == omis.KindParam || hasParams(vs[i].List) {
			return true
		}
	}
	return false
}

// complain reports an error that belongs to no request to the error handler (OMIS 7.1.3).
func (t *Tool) complain(err error, objects ...omis.Token) {
	t.e.log.Warn("an error of no request", "tool", t.name, "objects", objects, "error", err)
	t.tellHandler(failure(err, objects...))
}

func (t *Tool) tellHandler(r omis.ObjectResult) {
	t.mu.Lock()
	to := t.onError
	t.mu.Unlock()
	if to != nil {
		t.replies.push(to, whole(r))
	}
}

// debug sends how a request was understood to the error handler, with OMIS_OK.
func (t *Tool) debug(r *omis.Request) {
	values := []omis.Value{omis.String(syntax.Print(r))}
	if r.Event != nil {
		p := t.e.basePlacement(r, t.e.steps(r.Actions))
		values = append(values, omis.String(p.String()))
	}
	t.e.log.Debug("request", "tool", t.name, "request", values[0].Str)
	t.tellHandler(omis.ObjectResult{Status: omis.OK, Values: values})
}

// Finalize deletes the tool's requests and detaches from its objects (OMIS 7.1.4). Callbacks are not called
// any more, but one may still be running.
func (t *Tool) Finalize() error {
	t.e.toolsMu.Lock()
	if t.e.tools[t.name] == t {
		delete(t.e.tools, t.name)
	}
	t.e.toolsMu.Unlock()

	t.mu.Lock()
	was := t.finalized
	t.finalized = true
	t.buffered = nil
	t.mu.Unlock()
	if was {
		return nil
	}
	t.replies.close()
	return t.e.release(t)
}
