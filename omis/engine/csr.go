package engine

import (
	"math"
	"slices"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/node"
	"mirador/omis/service"
)

// csr is a conditional service request (OMIS 7.2.3).
type csr struct {
	ident
	tool    *Tool
	request *omis.Request
	event   definition
	steps   []step
	to      *sink
	run     placing.Request // where it runs

	// active is false from the moment the request is disabled, so that what was
	// recognised before and still waits is not executed after it.
	active atomic.Bool
	failed atomic.Uint64 // local executions with an error that nobody was told of

	// guarded by Engine.admin
	deleted bool
	cancel  func()         // of a source that is no place in a process
	cells   []service.Cell // what intervals found
	cellsAt uint64         // the registry's generation then, and one
}

// definition is the event of a conditional request.
type definition struct {
	service *service.Service
	source  source
	args    []omis.Value
	subject int
	watch   node.Watch // what nodes are asked for, but for the process
}

// source says how the events of a service are detected. Exactly one of kind, user
// and open is set. The parameters it names are those the watch needs; 0: none.
type source struct {
	kind    node.EventKind // by the node, or from firstOfEngine on by the engine
	address int
	call    int            // the name of a function or a system call
	numbers int            // a list of signals or tags
	user    bool           // by user_event_raise
	open    service.Source // by an extension
}

// Kinds of event that the engine itself knows of, since it is what makes them.
const (
	eventProcStopped node.EventKind = iota + firstOfEngine
	eventProcContinued
	eventWillMigrate
	eventMigrated
)

const firstOfEngine node.EventKind = 128

// define stores a conditional request; it is disabled yet.
func (t *Tool) define(r *omis.Request, to *sink) omis.Reply {
	s := t.e.catalog.Lookup(r.Event.Service)
	def := newDefinition(s, t.e.sources[s.Name], r.Event.Args)
	if failed := t.checkEvent(&def); len(failed) > 0 {
		return omis.Reply{{{Status: omis.CSRDefined}}, failed}
	}
	c := t.e.reg.add(omis.ClassCSR, func(i ident) object {
		return &csr{ident: i, tool: t, request: r, event: def, steps: t.e.steps(r.Actions), to: to}
	}).(*csr)
	c.begin()
	t.keep(c, func() { t.csrs = append(t.csrs, c) })
	return c.stateReply(omis.CSRDefined, omis.ServiceResult{done()})
}

// begin fills in what package placing needs of the request.
func (c *csr) begin() {
	c.run = placing.Request{
		Owner: c, Tool: owner{c.tool}, Token: c.token, Num: c.num, Watch: c.event.watch, Base: c.tool.e.place(c.request, c.steps),
		Times: slices.ContainsFunc(c.steps, step.times), Subs: make(map[*placing.Process]*placing.Subscription),
	}
}

func newDefinition(s *service.Service, src source, args []omis.Value) definition {
	return definition{service: s, source: src, args: args, subject: s.Subject(), watch: node.Watch{Event: src.kind}}
}

// checkEvent looks for what would keep the event from ever being detected.
func (t *Tool) checkEvent(d *definition) omis.ServiceResult {
	var failed omis.ServiceResult
	if err := d.fill(t.e.home); err != nil {
		failed = append(failed, failure(err))
	}
	for _, v := range d.tokens() {
		o, err := t.find(v.Token())
		if err != nil {
			failed = append(failed, failure(err, v.Token()))
			continue
		}
		if it, ok := o.(*item); ok && d.source.kind != 0 && !it.class.Converts() {
			failed = append(failed, mismatch(o, d.service.Params[d.subject])...)
		}
	}
	return failed
}

// fill takes over from the arguments what the watch needs. The home node knows whether a
// name is that of a system call.
func (d *definition) fill(home *machine) error {
	if i := d.source.address; i > 0 {
		addr, ok := d.args[i].Uint64()
		if !ok {
			return omis.Errorf(omis.ParameterError, "the address does not fit into 64 bits")
		}
		d.watch.Addr = addr
	}
	if i := d.source.call; i > 0 {
		d.watch.Name = d.args[i].Str
		if names, ok := declared(home.Can.CallNames); ok && (d.watch.Event == node.EventSysCallStarted || d.watch.Event == node.EventSysCallEnded) {
			if err := names.CheckCall(d.watch.Name); err != nil {
				return err
			}
		}
	}
	if i := d.source.numbers; i > 0 {
		for _, v := range d.args[i].List {
			n, ok := v.Int64()
			if !ok || n < math.MinInt32 || n > math.MaxInt32 {
				return omis.Errorf(omis.ParameterError, "%s has a number in it that does not fit into 32 bits", d.service.Params[i].Name)
			}
			d.watch.Signals = append(d.watch.Signals, int(n))
		}
		slices.Sort(d.watch.Signals)
		d.watch.Signals = slices.Compact(d.watch.Signals)
	}
	return nil
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
	if reply = x.run(reply, c.steps); reply == nil {
		return
	}
	c.note(reply)
	c.tool.replies.push(c.to, reply)
	x.settle()
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
