package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// conversions converts tokens into objects of the class that a service works on (OMIS 7.2.2). It belongs to
// one execution of an action list, and remembers all results, so that all conversions of one execution
// agree.
type conversions struct {
	tool    *Tool
	nodes   []object
	procs   []object
	loaded  bool // nodes has the nodes of the scope
	known   bool // procs is complete
	threads map[*process][]object
	groups  map[contentKey][]omis.Token

	// beyond allows tokens of objects that are not in the scope, for services that attach (OMIS 8.1.1,
	// 8.1.2).
	beyond bool
}

// contentKey is an object of an extension and the class of objects that a service wants of it.
type contentKey struct {
	item  *item
	class omis.Class
}

// objects converts an argument. A token without objects becomes an error; the other tokens are still
// converted.
func (c *conversions) objects(v omis.Value, p service.Param) ([]object, omis.ServiceResult) {
	if v.Kind != omis.KindList {
		return c.several([]omis.Value{v}, p)
	}
	if len(v.List) == 0 {
		return c.all(p.Class)
	}
	return c.several(v.List, p)
}

func (c *conversions) several(tokens []omis.Value, p service.Param) (list []object, failed omis.ServiceResult) {
	list = make([]object, 0, len(tokens))
	for i := range tokens {
		if o, ok := c.itself(&tokens[i], p); ok {
			list = append(list, o)
			continue
		}
		objs, missing := c.one(tokens[i], p)
		failed = append(failed, missing...)
		list = append(list, objs...)
	}
	// An object that is named twice is used once.
	if len(tokens) > 1 {
		list, failed = unique(list), uniqueFailures(failed)
	}
	return list, failed
}

// itself returns the object of a token that needs no conversion.
func (c *conversions) itself(v *omis.Value, p service.Param) (object, bool) {
	if v.Kind != omis.KindToken {
		return nil, false
	}
	o, err := c.tool.find(v.Token())
	return o, err == nil && o.Class() == p.Class
}

func unique(list []object) []object {
	if areAscending(list) {
		return list
	}
	seen := make(map[object]bool, len(list))
	return slices.DeleteFunc(list, func(o object) bool {
		was := seen[o]
		seen[o] = true
		return was
	})
}

// areAscending reports whether objects of one class are in the order of their tokens.
func areAscending(list []object) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1].number() >= list[i].number() {
			return false
		}
	}
	return true
}

func uniqueFailures(list omis.ServiceResult) omis.ServiceResult {
	if len(list) < 2 {
		return list
	}
	seen := make(map[omis.Token]bool, len(list))
	return slices.DeleteFunc(list, func(r omis.ObjectResult) bool {
		if len(r.Objects) == 0 {
			return false
		}
		was := seen[r.Objects[0]]
		seen[r.Objects[0]] = true
		return was
	})
}

func (c *conversions) one(v omis.Value, p service.Param) ([]object, omis.ServiceResult) {
	if v.Kind != omis.KindToken {
		return nil, omis.ServiceResult{failure(omis.Errorf(omis.TypeMismatch, "%s must be a token, not a value of type %s", p.Name, v.Kind))}
	}
	if c.beyond {
		if o := c.tool.e.reg.lookup(v.Token()); o != nil && o.Class() == p.Class {
			return []object{o}, nil
		}
	}
	o, err := c.tool.find(v.Token())
	if err != nil {
		return nil, omis.ServiceResult{failure(err, v.Token())}
	}
	return c.convert(o, p)
}

// convert expands or localises one object.
func (c *conversions) convert(o object, p service.Param) ([]object, omis.ServiceResult) {
	if o.Class() == p.Class {
		return []object{o}, nil
	}
	switch o := o.(type) {
	case *machine:
		switch p.Class {
		case omis.ClassProcess:
			return c.processes(o), nil
		case omis.ClassThread:
			return c.threadsIn(c.processes(o))
		case omis.ClassQueue:
			return c.queuesIn(c.processes(o))
		case omis.ClassMessage:
			return c.messagesIn(c.queuesIn(c.processes(o)))
		}
	case *process:
		switch p.Class {
		case omis.ClassNode:
			return []object{o.node()}, nil
		case omis.ClassThread:
			return c.threadsIn([]object{o})
		case omis.ClassQueue:
			return c.queuesIn([]object{o})
		case omis.ClassMessage:
			return c.messagesIn(c.queuesIn([]object{o}))
		}
	case *thread:
		switch p.Class {
		case omis.ClassNode:
			return []object{o.proc.node()}, nil
		case omis.ClassProcess:
			return []object{o.proc}, nil
		case omis.ClassQueue:
			return c.queueOfThread(o), nil
		case omis.ClassMessage:
			return c.messagesIn(c.queueOfThread(o), nil)
		}
	case *queueObject:
		switch p.Class {
		case omis.ClassNode:
			return []object{nodeOf(o)}, nil
		case omis.ClassProcess:
			return []object{o.proc}, nil
		case omis.ClassMessage:
			return c.messagesIn([]object{o}, nil)
		}
	case *messageObject:
		if p.Class == omis.ClassNode {
			return []object{o.node}, nil
		}
	case *item:
		return c.convertItem(o, p)
	}
	return nil, mismatch(o, p)
}

// convertItem converts an object of an extension.
func (c *conversions) convertItem(o *item, p service.Param) (list []object, failed omis.ServiceResult) {
	if !o.class.Converts() {
		return nil, mismatch(o, p)
	}
	for _, t := range c.contents(o, p.Class) {
		inner, err := c.tool.find(t)
		if err != nil {
			continue // not in this tool's scope
		}
		// An object without a parent class has no place in the hierarchy. Only its contents, and what
		// these contain, can replace it: an object above them contains other objects, too.
		if !isPlaced(t.Class()) || t.Class() != p.Class && o.class.Parent == nil && !isBelow(p.Class, t.Class()) {
			return nil, mismatch(o, p)
		}
		objs, missing := c.convert(inner, p)
		list, failed = append(list, objs...), append(failed, missing...)
	}
	return list, failed
}

// isBelow reports whether objects of a class are contained in objects of another (OMIS, Fig. 7.1).
func isBelow(c, upper omis.Class) bool {
	order := []omis.Class{omis.ClassNode, omis.ClassProcess, omis.ClassThread, omis.ClassQueue, omis.ClassMessage}
	return slices.Index(order, c) > slices.Index(order, upper)
}

// contents returns what an extension's object contains. It asks the extension once.
func (c *conversions) contents(o *item, class omis.Class) []omis.Token {
	key := contentKey{o, class}
	list, ok := c.groups[key]
	if !ok {
		if c.groups == nil {
			c.groups = make(map[contentKey][]omis.Token)
		}
		list = o.stands(class)
		c.groups[key] = list
	}
	return list
}

// stands lists the tokens that an extension's object contains, for a service that wants objects of another
// class.
func (o *item) stands(class omis.Class) []omis.Token {
	if o.class.Parent != nil {
		if t := o.class.Parent(o.value); t.Class() == class || o.class.Contained == nil {
			return []omis.Token{t}
		}
	}
	if o.class.Contained != nil {
		return o.class.Contained(o.value)
	}
	return nil
}

func mismatch(o object, p service.Param) omis.ServiceResult {
	err := omis.Errorf(omis.TypeMismatch, "%s cannot stand for objects of class %s_ (%s)", o.Token(), p.Class, p.Name)
	return omis.ServiceResult{failure(err, o.Token())}
}

// all returns all objects of a class in the scope, which an empty list stands for.
func (c *conversions) all(class omis.Class) ([]object, omis.ServiceResult) {
	switch class {
	case omis.ClassNode:
		return slices.Clone(c.allNodes()), nil
	case omis.ClassProcess:
		return c.processes(nil), nil
	case omis.ClassThread:
		return c.threadsIn(c.processes(nil))
	case omis.ClassQueue:
		return c.queuesIn(c.processes(nil))
	case omis.ClassMessage:
		return c.messagesIn(c.queuesIn(c.processes(nil)))
	}
	return c.tool.own(class), nil
}

// allNodes returns the nodes of the scope. It is called first even if only processes are wanted: the rest
// of the list must not see processes on a node that is added later, but may see those on a node that was
// there (OMIS 7.2.2).
func (c *conversions) allNodes() []object {
	if !c.loaded {
		c.nodes, c.loaded = c.tool.own(omis.ClassNode), true
	}
	return c.nodes
}

// processes returns the processes of a node; nil: of all nodes.
func (c *conversions) processes(n *machine) []object {
	if !c.known {
		nodes := c.allNodes()
		c.procs, c.known = c.tool.own(omis.ClassProcess), true
		c.procs = slices.DeleteFunc(c.procs, func(o object) bool { return !slices.Contains(nodes, object(nodeOf(o))) })
	}
	list := slices.Clone(c.procs)
	if n == nil {
		return list
	}
	return slices.DeleteFunc(list, func(o object) bool { return nodeOf(o) != n })
}

// forget lets later actions use objects that the list itself attached to.
func (c *conversions) forget() {
	c.nodes, c.loaded = nil, false
	c.procs, c.known = nil, false
}

// threadsIn returns the threads of processes. A process that has just ended has none. Any other error is an
// error of that process only.
func (c *conversions) threadsIn(procs []object) (list []object, failed omis.ServiceResult) {
	for _, o := range procs {
		ts, err := c.threadsOf(o.(*process))
		switch {
		case err == nil:
			list = append(list, ts...)
		case len(procs) == 1 || !isUnknown(err):
			failed = append(failed, failure(err, o.Token()))
		}
	}
	return list, failed
}

func (c *conversions) threadsOf(p *process) ([]object, error) {
	if list, ok := c.threads[p]; ok {
		return slices.Clone(list), nil
	}
	at := p.at()
	tids, err := at.node.Threads(at.id)
	if err != nil {
		return nil, err
	}
	list := c.tool.e.reg.refresh(p, tids)
	if c.tool.hidden.Load() != nil {
		list = slices.DeleteFunc(list, func(o object) bool { return c.tool.hides(o.Token()) })
	}
	if c.threads == nil {
		c.threads = make(map[*process][]object)
	}
	c.threads[p] = list
	return slices.Clone(list), nil
}

// whole reports whether threads are all threads of a process. Then the node is asked to act on the process,
// which includes threads that are being created.
func (c *conversions) whole(g *crew) bool {
	all, ok := c.threads[g.proc]
	if !ok || len(all) != len(g.threads) || c.tool.hidden.Load() != nil {
		return false
	}
	// The list may also name a thread that was created after the conversion.
	named := make(map[object]bool, len(g.threads))
	for _, t := range g.threads {
		named[t] = true
	}
	return !slices.ContainsFunc(all, func(o object) bool { return !named[o] })
}
