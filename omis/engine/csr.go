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

	// active becomes false when the request is disabled. Events that were recognised before, and still
	// wait, are not executed then.
	active atomic.Bool
	failed atomic.Uint64 // local executions with an error that was not reported

	// guarded by Engine.admin
	deleted bool
	cancel  func()         // of a source that occurs in no process
	cells   []service.Cell // the result of Intervals
	cellsAt uint64         // the registry's generation then, plus 1
}

// definition is the event of a conditional request.
type definition struct {
	service *service.Service
	source  source
	args    []omis.Value
	subject int
	watch   node.Watch // what nodes are asked to watch, without the process
}

// source says how the events of a service are detected. Exactly one of kind, user and open is set. The
// numbers of parameters say what the watch needs; 0: none.
type source struct {
	kind    node.EventKind // by the node or, from firstOfEngine on, by the engine
	address int
	when    int            // condition of the flags at the address
	call    int            // name of a function or a system call
	numbers int            // list of signals or tags
	user    bool           // by user_event_raise
	open    service.Source // by an extension
}

// Kinds of events that the engine itself causes.
const (
	eventProcStopped node.EventKind = iota + firstOfEngine
	eventProcContinued
	eventWillMigrate
	eventMigrated
)

const firstOfEngine node.EventKind = 128

// define stores a conditional request. It is not enabled yet.
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
		Owner: c, Tool: owner{c.tool}, Token: c.token, Num: c.num, Watch: c.event.watch, Base: c.tool.e.basePlacement(c.request, c.steps),
		Times: slices.ContainsFunc(c.steps, step.times), Subs: make(map[*placing.Process]*placing.Subscription),
	}
}

func newDefinition(s *service.Service, src source, args []omis.Value) definition {
	return definition{service: s, source: src, args: args, subject: s.Subject(), watch: node.Watch{Event: src.kind}}
}

// checkEvent returns errors for everything that would prevent the event from being detected.
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

// fill takes what the watch needs from the arguments. The home node checks names of system calls.
func (d *definition) fill(home *machine) error {
	if i := d.source.address; i > 0 {
		addr, ok := d.args[i].Uint64()
		if !ok {
			return omis.Errorf(omis.ParameterError, "the address does not fit into 64 bits")
		}
		d.watch.Addr = addr
	}
	if i := d.source.when; i > 0 {
		number, ok := d.args[i].Uint64()
		if !ok || number >= node.MostConditions {
			return omis.Errorf(omis.ParameterError, "the number of a condition is at most %d", node.MostConditions-1)
		}
		d.watch.When = node.If(uint8(number))
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

// tokens returns the objects that the definition names.
func (d *definition) tokens() []omis.Value {
	if d.subject < 0 {
		return nil
	}
	if v := d.args[d.subject]; v.Kind != omis.KindList {
		return []omis.Value{v}
	}
	return d.args[d.subject].List
}

// stateReply makes the reply for a change of the request's state. It contains the request's token, for
// tools that use one callback for several requests.
func (c *csr) stateReply(s omis.Status, event omis.ServiceResult) omis.Reply {
	return omis.Reply{{{Status: s, Values: []omis.Value{omis.TokenValue(c.token)}}}, event}
}

// trigger executes the action list for an event at an object. outer is the list that raised the event, if
// it waits for this one.
func (c *csr) trigger(occ *service.Occurrence, at omis.Token, outer *execution) {
	if !c.active.Load() {
		return
	}
	x := (&execution{e: c.tool.e, toolScope: toolScope{c.tool}, csr: c, occ: occ, locked: c.request.Locked}).within(outer)
	reply := make(omis.Reply, 1, len(c.steps)+1)
	reply[0] = omis.ServiceResult{c.triggered(at)}
	if reply = x.run(reply, c.steps); reply == nil {
		return
	}
	c.countErrors(reply)
	c.tool.replies.push(c.to, reply)
	x.runAfter()
}

func (c *csr) triggered(at omis.Token) omis.ObjectResult {
	return omis.ObjectResult{
		Objects: []omis.Token{at}, Status: omis.CSRTriggered,
		Values: []omis.Value{omis.TokenValue(c.token)},
	}
}

// countErrors counts and logs errors of requests without a callback.
func (c *csr) countErrors(r omis.Reply) {
	if c.to.callback != nil {
		return
	}
	if err := r.Err(); err != nil && c.failed.Add(1) == 1 {
		c.tool.e.log.Warn("an action failed", "tool", c.tool.name, "request", c.token, "error", err)
	}
}
