package engine

import (
	"context"
	"math"
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// maxNesting limits how deep executions may be nested: an action list may raise a user event, stop a process
// for whose stop another list waits, or call an extension that makes a request; each of these executes within
// the list, and may do so, too.
const maxNesting = 16

// step is an action of a request, looked up in the table.
type step struct {
	service *service.Service
	do      action
	args    []omis.Value
	subject int
	params  bool // some arguments are event context parameters
	pos     int
	barrier bool // a semicolon follows
}

// action implements a manipulation or information service: by each or batch, or by both.
type action struct {
	// each executes the service on one object, or on none.
	each func(*execution, *call) ([]omis.Value, error)
	// ahead reads about many objects together, so that each finds the result in the call. It returns about
	// how many objects it read.
	ahead func(*call, []object) int
	// batch executes the service on all objects together, if that is cheaper or less intrusive. If there is
	// also each, batch is for several objects.
	batch func(*execution, *call, []object) omis.ServiceResult
	// local is what may run on the owner of a process, if the table allows it.
	local service.Action
	// compile makes the action a step of a program, if possible.
	compile service.Compile

	// spread reports that nodes may work on their objects concurrently: the service changes neither scopes
	// nor requests.
	spread bool
	// free reports that the service touches no node at all; wide reports that it touches more than the
	// nodes of its objects.
	free, wide bool
	// leads reports that other lists may be executed before the service is done: those that wait for its
	// effects, or requests of an extension. These may touch any node, so all nodes are locked.
	leads bool
	// crowded reports that many objects may be worked on concurrently: the service only reads.
	crowded bool
}

// call is one execution of a step. object is nil if the service has no objects.
type call struct {
	*step
	object object
	args   []omis.Value

	// What ahead read, of threads by their numbers.
	infos map[*process]map[int]node.ThreadInfo
	procs map[*process]*node.ProcInfo
}

func (c *call) int(i int) (int64, error) {
	n, ok := c.args[i].Int64()
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "%s of %s does not fit into 64 bits", c.service.Params[i].Name, c.service.Name)
	}
	return n, nil
}

// small returns an argument that must fit into 32 bits.
func (c *call) small(i int) (int, error) {
	n, err := c.int(i)
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		err = omis.Errorf(omis.ParameterError, "%s of %s does not fit into 32 bits", c.service.Params[i].Name, c.service.Name)
	}
	return int(n), err
}

func (c *call) address(i int) (uint64, error) {
	addr, ok := c.args[i].Uint64()
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "the address does not fit into 64 bits")
	}
	return addr, nil
}

// execution is one execution of an action list.
type execution struct {
	toolScope
	e      *Engine
	csr    *csr                // nil in an unconditional request
	occ    *service.Occurrence // nil in an unconditional request
	conv   conversions
	locked bool // the list is a locked one
	outer  *execution
	nested int        // number of lists that wait for this one
	nodes  []*machine // the nodes that it touches, in their order; these are locked

	// covered reports that a locked list waits for this one, and its lock covers this one.
	covered bool

	mu    sync.Mutex
	raise []func() // events that the engine caused; guarded by mu
	after []func() // done after the list's reply was sent
}

// run executes the steps and returns their results, appended to the first element of a reply. It returns
// nil if the request was disabled before it could begin.
func (x *execution) run(reply omis.Reply, steps []step) omis.Reply {
	x.conv.tool = x.tool
	x.nodes = x.touched(steps)
	if x.locked || x.covered {
		x.guard(steps)
	}
	x.lock()
	defer x.unlock()
	if x.csr != nil && !x.csr.active.Load() {
		return nil // a locked list disabled it while this one waited
	}
	if len(x.nodes) > 1 {
		return x.runSpread(reply, steps)
	}
	for i := range steps {
		reply = append(reply, x.step(&steps[i]))
		x.raiseAll()
	}
	return reply
}

// within makes x an execution that another one waits for.
func (x *execution) within(outer *execution) *execution {
	if outer != nil {
		x.outer = outer
		x.nested = outer.nested + 1
		x.covered = outer.covered || outer.locked
	}
	return x
}

// runAfter does what had to wait until the list's own reply was sent.
func (x *execution) runAfter() {
	for _, f := range x.after {
		f()
	}
}

// step executes one service on all its objects. An error ends it for the object that has the error (OMIS
// 7.2.3).
func (x *execution) step(s *step) (results omis.ServiceResult) {
	defer func() {
		if r := recover(); r != nil {
			results = omis.ServiceResult{x.e.panicked(s.service.Name, r)}
		}
	}()
	c, failed := x.bound(s)
	if failed != nil {
		return failed
	}
	if s.subject < 0 {
		return s.finish(omis.ServiceResult{x.once(&c)}, 1)
	}
	objs, failed := x.objectsOf(s, c.args[s.subject], s.service.Params[s.subject])
	return s.finish(append(failed, x.work(c, objs)...), len(objs)+len(failed))
}

// bound puts the values of event context parameters into the arguments.
func (x *execution) bound(s *step) (call, omis.ServiceResult) {
	c := call{step: s, args: s.args}
	if !s.params {
		return c, nil
	}
	args, err := x.bind(s.args)
	if err == nil {
		c.args = args
		err = checkTypes(s, args)
	}
	if err != nil {
		return c, omis.ServiceResult{failure(err)}
	}
	return c, nil
}

// work executes a service on objects.
func (x *execution) work(c call, objs []object) omis.ServiceResult {
	if len(objs) == 0 {
		return nil
	}
	unread := len(objs)
	if c.do.ahead != nil {
		unread -= c.do.ahead(&c, objs)
	}
	switch {
	case c.do.batch != nil && (c.do.each == nil || len(objs) > 1):
		return c.do.batch(x, &c, objs)
	case c.do.crowded && unread >= 2*crowd:
		return x.workCrowd(c, objs)
	}
	return x.workInTurn(c, objs)
}

func (x *execution) workInTurn(c call, objs []object) omis.ServiceResult {
	results := make(omis.ServiceResult, len(objs))
	named := tokens(objs)
	for i, o := range objs {
		c.object = o
		results[i] = x.once(&c)
		results[i].Objects = named[i : i+1 : i+1]
	}
	return results
}

// objectsOf converts the tokens of a service. Only services that attach accept objects outside the scope.
func (x *execution) objectsOf(s *step, v omis.Value, p service.Param) ([]object, omis.ServiceResult) {
	switch s.service.Name {
	case "proc_attach", "node_attach":
		x.conv.beyond = true
		defer func() { x.conv.beyond = false }()
	case "proc_attach3", "proc_create":
		if v.Kind == omis.KindList && len(v.List) == 0 && len(x.tool.own(omis.ClassNode)) == 0 {
			return []object{x.e.home}, nil
		}
	}
	return x.conv.objects(v, p)
}

func (x *execution) once(c *call) omis.ObjectResult {
	values, err := c.do.each(x, c)
	if err != nil {
		return failure(err)
	}
	return omis.ObjectResult{Status: omis.OK, Values: values}
}

// bind replaces event context parameters by their values.
func (x *execution) bind(args []omis.Value) ([]omis.Value, error) {
	bound := make([]omis.Value, len(args))
	for i, v := range args {
		switch v.Kind {
		case omis.KindParam:
			value, ok := contextValue(x.csr, x.occ, v.Str)
			if !ok {
				return nil, omis.Errorf(omis.UnknownECP, "this occurrence of the event has no parameter $%s", v.Str)
			}
			bound[i] = value
		case omis.KindList:
			list, err := x.bind(v.List)
			if err != nil {
				return nil, err
			}
			bound[i] = omis.Value{Kind: omis.KindList, List: list, Pos: v.Pos}
		default:
			bound[i] = v
		}
	}
	return bound, nil
}

// contextValue returns the value of an event context parameter (OMIS 7.2.4).
func contextValue(c *csr, occ *service.Occurrence, name string) (omis.Value, bool) {
	switch name {
	case "node":
		return omis.TokenValue(occ.Node), true
	case "proc":
		return omis.TokenValue(occ.Proc), true
	case "thread":
		return omis.TokenValue(occ.Thread), true
	case "time":
		return omis.Seconds(uint64(occ.Time)), true
	case "csr":
		return omis.TokenValue(c.token), true
	case "held":
		return omis.String(occ.Held), true
	case "held_for":
		return omis.Seconds(uint64(max(occ.Now()-occ.Time, 0))), true
	}
	i := c.paramIndex(name)
	if i < 0 || i >= len(occ.Params) {
		return omis.Value{}, false
	}
	return occ.Params[i], true
}

// paramIndex returns the index of an event's own context parameter, -1 if it has none with that name.
func (c *csr) paramIndex(name string) int {
	if i, ok := service.OpenIndex(name); ok {
		return i
	}
	return slices.IndexFunc(c.event.service.Context, func(p service.Param) bool { return p.Name == name })
}

// checkTypes checks the types of parameters that the definition of the event leaves open, which could not
// be checked when the request was defined.
func checkTypes(s *step, args []omis.Value) error {
	for i := range args {
		if err := s.service.Params[i].Accepts(args[i]); err != nil {
			return omis.Errorf(omis.TypeMismatch, "%s: %w", s.service.Name, err)
		}
	}
	return nil
}

// Request executes a request of an extension within the action that makes it.
func (x *execution) Request(ctx context.Context, text string, later func(omis.Reply)) (omis.Reply, error) {
	if x.nested >= maxNesting {
		return nil, omis.Errorf(omis.ParameterError, "requests are nested deeper than %d", maxNesting)
	}
	x.unlockForNested()
	defer x.lockAfterNested()
	return x.tool.nested(ctx, text, &sink{callback: later}, x)
}

// extensionAction makes an action of an extension's implementation.
func extensionAction(do service.Action) func(*execution, *call) ([]omis.Value, error) {
	return func(x *execution, c *call) ([]omis.Value, error) {
		sc := service.Call{Args: c.args, Event: x.occ, Scope: x}
		if c.object != nil {
			sc.Token = c.object.Token()
			if it, ok := c.object.(*item); ok {
				sc.Object = it.value
			}
		}
		return do(&sc)
	}
}
