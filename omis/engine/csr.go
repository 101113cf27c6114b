package engine

import (
	"slices"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/service"
)

// csr is a conditional service request (OMIS 7.2.3).
type csr struct {
	ident
	tool      *Tool
	request   *omis.Request
	event     definition
	steps     []step
	to        *sink
	placement Placement

	// active is false from the moment the request is disabled, so that what was
	// recognised before and still waits is not executed after it.
	active atomic.Bool
	failed atomic.Uint64 // local executions with an error that nobody was told of

	// guarded by Engine.admin
	deleted bool
	subs    map[*process]*subscription
	cancel  func() // of a source that is no place in a process
}

// definition is the event of a conditional request.
type definition struct {
	service *service.Service
	source  source
	args    []omis.Value
	subject int
	addr    uint64 // of a source with an address
}

// source says how the events of a service are detected. Exactly one of kind, user
// and open is set.
type source struct {
	kind    omis.EventKind // by the node, process by process
	address int            // the parameter that is an address; 0: none
	user    bool           // by user_event_raise
	open    service.Source // by an extension
}

// define stores a conditional request; it is disabled yet.
func (t *Tool) define(r *omis.Request, to *sink) omis.Reply {
	s := t.e.catalog.Lookup(r.Event.Service)
	def := definition{service: s, source: t.e.sources[s.Name], args: r.Event.Args, subject: s.Subject()}
	if failed := t.checkEvent(&def); len(failed) > 0 {
		return omis.Reply{{{Status: omis.CSRDefined}}, failed}
	}
	c := t.e.reg.add(omis.ClassCSR, func(i ident) object {
		return &csr{
			ident: i, tool: t, request: r, event: def, steps: t.e.steps(r.Actions), to: to,
			subs: make(map[*process]*subscription),
		}
	}).(*csr)
	c.placement = t.e.place(r, c.steps)
	t.keep(c, func() { t.csrs = append(t.csrs, c) })
	return c.stateReply(omis.CSRDefined, omis.ServiceResult{done()})
}

// checkEvent looks for what would keep the event from ever being detected.
func (t *Tool) checkEvent(d *definition) omis.ServiceResult {
	var failed omis.ServiceResult
	if d.source.address > 0 {
		addr, ok := d.args[d.source.address].Uint64()
		if !ok {
			failed = append(failed, failure(omis.Errorf(omis.ParameterError, "the address does not fit into 64 bits")))
		}
		d.addr = addr
	}
	for _, v := range d.tokens() {
		if _, err := t.find(v.Token()); err != nil {
			failed = append(failed, failure(err, v.Token()))
		}
	}
	return failed
}

// tokens are the objects that the definition names.
func (d *definition) tokens() []omis.Value {
	if d.subject < 0 {
		return nil
	}
	if v := d.args[d.subject]; v.Kind != omis.KindList {
		return []omis.Value{v}
	}
	return d.args[d.subject].List
}

// stateReply tells of a change of the request's state. The token stands in it for
// tools that serve several requests with one callback.
func (c *csr) stateReply(s omis.Status, event omis.ServiceResult) omis.Reply {
	return omis.Reply{{{Status: s, Values: []omis.Value{omis.TokenValue(c.token)}}}, event}
}

// trigger executes the action list for an occurrence at an object. outer is the
// list that raised the event, if it waits for this one.
func (c *csr) trigger(occ *service.Occurrence, at omis.Token, outer *execution) {
	if !c.active.Load() {
		return
	}
	x := (&execution{e: c.tool.e, tool: c.tool, csr: c, occ: occ, locked: c.request.Locked}).within(outer)
	reply := make(omis.Reply, 1, len(c.steps)+1)
	reply[0] = omis.ServiceResult{c.triggered(at)}
	reply = x.run(reply, c.steps)
	c.note(reply)
	c.tool.replies.push(c.to, reply)
}

func (c *csr) triggered(at omis.Token) omis.ObjectResult {
	return omis.ObjectResult{
		Objects: []omis.Token{at}, Status: omis.CSRTriggered,
		Values: []omis.Value{omis.TokenValue(c.token)},
	}
}

// note counts and logs what went wrong where no callback will hear of it.
func (c *csr) note(r omis.Reply) {
	if c.to.callback != nil {
		return
	}
	if err := r.Err(); err != nil && c.failed.Add(1) == 1 {
		c.tool.e.log.Warn("an action failed", "tool", c.tool.name, "request", c.token, "error", err)
	}
}

// remove takes a deleted request out of the tables.
func (c *csr) remove() {
	c.deleted = true
	c.tool.e.reg.remove(c.token)
	c.tool.mu.Lock()
	defer c.tool.mu.Unlock()
	c.tool.csrs = slices.DeleteFunc(c.tool.csrs, func(other *csr) bool { return other == c })
}
