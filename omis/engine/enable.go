package engine

import (
	"fmt"
	"maps"
	"slices"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/service"
)

// All functions of this file want Engine.admin held by their caller.

// enable enables requests of one tool, all together. If some of the processes cannot be watched, the others
// are, and the error is marked as fatal, because the state of the request has changed (OMIS 7.2.3).
func (e *Engine) enable(list []*csr) []error {
	errs := make([]error, len(list))
	var wants []placing.Wanted
	begin, end := make([]int, len(list)), make([]int, len(list))
	for i, c := range list {
		begin[i], end[i] = len(wants), len(wants)
		switch {
		case c.deleted:
			errs[i] = unknownToken(c.token)
		case c.active.Swap(true):
			begin[i] = enabledBefore
		case c.event.source.kind == 0:
			errs[i] = e.open(c)
		default:
			for _, t := range c.targets() {
				wants = append(wants, placing.Wanted{Request: &c.run, Target: t.placed()})
			}
			end[i] = len(wants)
		}
	}
	for _, c := range list {
		c.guard()
	}
	failed := e.placing.SubscribeAll(wants)
	for i, c := range list {
		if errs[i] == nil && begin[i] != enabledBefore {
			errs[i] = c.enabled(wants[begin[i]:end[i]], failed[begin[i]:end[i]])
		}
	}
	return errs
}

// guard is for a locked request, and is called before its list is executed for the first time. Other requests
// that change the objects named by the list are executed by the monitor from then on, not by programs.
func (c *csr) guard() {
	if !c.request.Locked || c.deleted {
		return
	}
	x := &execution{e: c.tool.e, toolScope: toolScope{c.tool}, csr: c}
	for i := range c.steps {
		if s := &c.steps[i]; !s.params {
			for _, cell := range x.cells(s) {
				c.tool.e.placing.Guard(owner{c.tool}, cell)
			}
		}
	}
}

// enabledBefore stands for the targets of a request that is enabled already.
const enabledBefore = -1

// open enables a request whose event occurs in no process.
func (e *Engine) open(c *csr) error {
	for _, p := range (owner{c.tool}).Processes() {
		e.placing.MakeWay(&c.run, p)
	}
	if c.event.source.open == nil {
		return nil
	}
	err := e.openSource(c)
	if err != nil {
		c.active.Store(false)
	}
	return err
}

// enabled reports the result to the tool. It ignores processes that have ended meanwhile, unless all of
// them have.
func (c *csr) enabled(wants []placing.Wanted, failed []error) error {
	var results omis.ServiceResult
	ended := 0
	for i, err := range failed {
		switch {
		case isUnknown(err):
			ended++
		case err != nil:
			results = append(results, failure(err, wants[i].Proc.Token))
		}
	}
	var err error
	looked := len(wants) - ended - len(results)
	switch n := len(results); {
	case looked == 0 && len(wants) > 0:
		c.active.Store(false)
		first := failure(failed[0], wants[0].Proc.Token)
		if n > 0 {
			first = results[0]
		}
		return &omis.Error{Status: first.Status, Msg: first.Msg}
	case n > 0:
		first := results[0]
		err = omis.Errorf(first.Status|omis.Fatal, "enabled for %d of %d processes; for %s: %s",
			looked, len(wants), first.Objects[0], first.Msg)
	}
	c.tool.replies.push(c.to, c.stateReply(omis.CSREnabled, onlyErrors(results, len(c.run.Subs)+len(results))))
	return err
}

func isUnknown(err error) bool { return omis.StatusOf(err) == omis.UnknownObject }

func isUnsupported(err error) bool { return omis.StatusOf(err) == omis.UnsupportedService }

// openSource starts an extension's event.
func (e *Engine) openSource(c *csr) error {
	raise := func(o service.Occurrence) { e.raise(c, o) }
	cancel, err := c.event.source.open(c.event.args, toolScope{c.tool}, raise)
	if err != nil {
		return err
	}
	c.cancel = cancel
	return nil
}

// raise executes a request for an event that an extension detected.
func (e *Engine) raise(c *csr, o service.Occurrence) {
	if o.Node == "" {
		o.Node = e.home.token
	}
	if o.Proc == "" {
		o.Proc = omis.Undefined
	}
	if o.Thread == "" {
		o.Thread = omis.Undefined
	}
	if o.Now == nil {
		o.Now = e.now
	}
	if o.Time == 0 {
		o.Time = o.Now()
	}
	c.trigger(&o, o.Place(c.event.service.Object), nil)
}

// remove disables requests, and deletes them.
func (e *Engine) remove(list ...*csr) {
	e.disable(list...)
	e.placing.Delete(runs(list))
	tools := make(map[*Tool]bool)
	for _, c := range list {
		c.deleted, tools[c.tool] = true, true
		e.reg.remove(c.token)
	}
	for t := range tools {
		t.mu.Lock()
		t.csrs = slices.DeleteFunc(t.csrs, func(c *csr) bool { return c.deleted })
		t.mu.Unlock()
	}
}

// disable disables requests, and returns those that were enabled.
func (e *Engine) disable(list ...*csr) (enabled []*csr) {
	for _, c := range list {
		if !c.active.Swap(false) {
			continue
		}
		enabled = append(enabled, c)
		if c.cancel != nil {
			c.cancel()
			c.cancel = nil
		}
	}
	e.placing.Disable(runs(enabled))
	return enabled
}

// target is a process that an event is defined for, with the threads or queues that it is limited to.
type target struct {
	proc *process
	only map[omis.Token]bool // nil: all, including those to come
}

// targets converts the objects of the event's definition, for the present scope. It omits objects that are
// not attached, because they are not observed (OMIS 8.1.2).
func (c *csr) targets() []target {
	named := c.event.tokens()
	if len(named) == 0 {
		return c.tool.allTargets(nil)
	}
	var list []target
	for _, v := range named {
		if o, err := c.tool.find(v.Token()); err == nil {
			list = append(list, c.targetsOf(o)...)
		}
	}
	return mergeTargets(list)
}

func (c *csr) targetsOf(o object) (list []target) {
	switch o := o.(type) {
	case *machine:
		return c.tool.allTargets(o)
	case *process:
		return []target{{proc: o}}
	case *thread:
		return []target{c.partTarget(o.proc, o.token, omis.ClassThread)}
	case *queueObject:
		return []target{c.partTarget(o.proc, o.token, omis.ClassQueue)}
	case *item:
		for _, inner := range o.stands(c.event.service.Object) {
			if found, err := c.tool.find(inner); err == nil && isPlaced(found.Class()) {
				list = append(list, c.targetsOf(found)...)
			}
		}
	}
	return list
}

// partTarget returns the target for a thread or a queue of a process. Events of other classes include the
// whole process.
func (c *csr) partTarget(p *process, part omis.Token, class omis.Class) target {
	if c.event.service.Object != class {
		return target{proc: p}
	}
	return target{proc: p, only: map[omis.Token]bool{part: true}}
}

// allTargets returns the attached processes of a node; nil: of all nodes.
func (t *Tool) allTargets(n *machine) []target {
	var list []target
	for _, p := range t.processes() {
		if n == nil || p.node() == n {
			list = append(list, target{proc: p})
		}
	}
	return list
}

// mergeTargets merges targets in the same process.
func mergeTargets(list []target) []target {
	var merged []target
	for _, t := range list {
		i := slices.IndexFunc(merged, func(other target) bool { return other.proc == t.proc })
		switch {
		case i < 0:
			merged = append(merged, t)
		case t.only == nil:
			merged[i].only = nil
		case merged[i].only != nil:
			maps.Copy(merged[i].only, t.only)
		}
	}
	return merged
}

// follow enables a tool's enabled requests in a process that was added to its scope.
func (e *Engine) follow(t *Tool, p *process) {
	for _, c := range t.requests() {
		if !c.active.Load() || c.event.source.kind == 0 {
			continue
		}
		i := slices.IndexFunc(c.targets(), func(t target) bool { return t.proc == p })
		if i < 0 || c.run.Subs[&p.programs] != nil {
			continue
		}
		c.report(omis.CSREnabled, p, e.placing.Subscribe(&c.run, c.targets()[i].placed()))
	}
}

// regroup adapts the enabled requests of a tool to the present contents of an extension's object. By
// OMIS 7.2.2 the definition's tokens are converted at each event; between two changes all these conversions
// have the same result.
func (e *Engine) regroup(t *Tool, changed *item) {
	for _, c := range t.requests() {
		if !c.active.Load() || c.event.source.kind == 0 || !c.names(changed.token) {
			continue
		}
		wanted := c.targets()
		for _, p := range c.processes() {
			s := c.run.Subs[&p.programs]
			i := slices.IndexFunc(wanted, func(t target) bool { return t.proc == p })
			if i >= 0 && maps.Equal(wanted[i].only, s.Only) && (wanted[i].only == nil) == (s.Only == nil) {
				continue
			}
			e.placing.Unsubscribe(&p.programs, &c.run)
			if i < 0 {
				c.report(omis.CSRDisabled, p, nil)
			}
		}
		for _, target := range wanted {
			if c.run.Subs[&target.proc.programs] == nil {
				c.report(omis.CSREnabled, target.proc, e.placing.Subscribe(&c.run, target.placed()))
			}
		}
	}
}

// processes returns the processes that the request is executed in, in the order of their numbers.
func (c *csr) processes() []*process {
	var list []*process
	for p := range c.run.Subs {
		list = append(list, processOf(p))
	}
	sortObjects(list)
	return list
}

// names reports whether the event's definition contains a token.
func (c *csr) names(t omis.Token) bool {
	return slices.ContainsFunc(c.event.tokens(), func(v omis.Value) bool { return v.Token() == t })
}

// report reports that the event is watched in one more process, or one less.
func (c *csr) report(s omis.Status, p *process, failed error) {
	c.tool.replies.push(c.to, c.stateReply(s, omis.ServiceResult{outcome(failed, p.token)}))
}

// leave disables the requests of a tool in a process.
func (e *Engine) leave(t *Tool, p *process) {
	all := t.requests()
	enabled := slices.DeleteFunc(slices.Clone(all), func(c *csr) bool { return c.run.Subs[&p.programs] == nil })
	e.placing.Unsubscribe(&p.programs, runs(all)...)
	for _, c := range enabled {
		c.report(omis.CSRDisabled, p, nil)
	}
}

func (d *definition) String() string {
	if d.source.address > 0 {
		return fmt.Sprintf("%s at %#x", d.service.Name, d.watch.Addr)
	}
	return d.service.Name
}
