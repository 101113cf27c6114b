package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// conversions turns tokens into objects of the class a service works on
// (OMIS 7.2.2). It belongs to one execution of an action list and remembers what
// each step gave, so that all conversions of an execution agree.
type conversions struct {
	tool    *Tool
	procs   []object
	loaded  bool
	threads map[*process][]object
}

// objects converts an argument. Tokens that stand for nothing are errors of their
// own, and the rest goes on.
func (c *conversions) objects(v omis.Value, p service.Param) ([]object, omis.ServiceResult) {
	if v.Kind != omis.KindList {
		return c.several([]omis.Value{v}, p)
	}
	if len(v.List) == 0 {
		list, err := c.all(p.Class)
		if err != nil {
			return nil, omis.ServiceResult{failure(err)}
		}
		return list, nil
	}
	return c.several(v.List, p)
}

func (c *conversions) several(tokens []omis.Value, p service.Param) (list []object, failed omis.ServiceResult) {
	for i := range tokens {
		objs, err := c.one(tokens[i], p)
		if err != nil {
			failed = append(failed, failure(err, tokens[i].Token()))
			continue
		}
		list = append(list, objs...)
	}
	// An object that is named twice is worked on once.
	if len(tokens) > 1 {
		list = unique(list)
	}
	return list, failed
}

func unique(list []object) []object {
	seen := make(map[object]bool, len(list))
	return slices.DeleteFunc(list, func(o object) bool {
		was := seen[o]
		seen[o] = true
		return was
	})
}

func (c *conversions) one(v omis.Value, p service.Param) ([]object, error) {
	if v.Kind != omis.KindToken {
		return nil, omis.Errorf(omis.TypeMismatch, "%s must be a token, not a value of type %s", p.Name, v.Kind)
	}
	o, err := c.tool.find(v.Token())
	if err != nil {
		return nil, err
	}
	return c.convert(o, p)
}

// convert expands or localises one object.
func (c *conversions) convert(o object, p service.Param) ([]object, error) {
	if classOf(o) == p.Class {
		return []object{o}, nil
	}
	switch o := o.(type) {
	case *node:
		if p.Class == omis.ClassProcess || p.Class == omis.ClassThread {
			return c.all(p.Class)
		}
	case *process:
		switch p.Class {
		case omis.ClassNode:
			return []object{c.tool.e.self}, nil
		case omis.ClassThread:
			return c.threadsOf(o)
		}
	case *thread:
		switch p.Class {
		case omis.ClassNode:
			return []object{c.tool.e.self}, nil
		case omis.ClassProcess:
			return []object{o.proc}, nil
		}
	case *item:
		return c.convertItem(o, p)
	}
	return nil, mismatch(o, p)
}

// convertItem goes by what the extension says of its class.
func (c *conversions) convertItem(o *item, p service.Param) ([]object, error) {
	var tokens []omis.Token
	if o.class.Contained != nil {
		tokens = o.class.Contained(o.value)
	}
	if o.class.Parent != nil {
		if t := o.class.Parent(o.value); t.Class() == p.Class {
			tokens = []omis.Token{t}
		}
	}
	if tokens == nil {
		return nil, mismatch(o, p)
	}
	var list []object
	for _, t := range tokens {
		inner, err := c.tool.find(t)
		if err != nil {
			continue // not in this tool's scope
		}
		objs, err := c.convert(inner, p)
		if err != nil {
			return nil, err
		}
		list = append(list, objs...)
	}
	return list, nil
}

func mismatch(o object, p service.Param) error {
	return omis.Errorf(omis.TypeMismatch, "%s cannot stand for objects of class %s_ (%s)", o.Token(), p.Class, p.Name)
}

// all is what an empty list stands for: all objects of a class in the scope.
func (c *conversions) all(class omis.Class) ([]object, error) {
	switch class {
	case omis.ClassProcess:
		return c.processes(), nil
	case omis.ClassThread:
		var list []object
		for _, p := range c.processes() {
			ts, err := c.threadsOf(p.(*process))
			if err != nil {
				continue // it has just ended: it has no threads
			}
			list = append(list, ts...)
		}
		return list, nil
	}
	return c.tool.own(class), nil
}

func (c *conversions) processes() []object {
	if !c.loaded {
		c.procs, c.loaded = c.tool.own(omis.ClassProcess), true
	}
	return slices.Clone(c.procs)
}

// forget lets later actions see a process that the list itself attached to.
func (c *conversions) forget() { c.procs, c.loaded = nil, false }

func (c *conversions) threadsOf(p *process) ([]object, error) {
	if list, ok := c.threads[p]; ok {
		return slices.Clone(list), nil
	}
	tids, err := c.tool.e.node.Threads(p.id)
	if err != nil {
		return nil, err
	}
	list := c.tool.e.reg.refresh(p, tids)
	if c.threads == nil {
		c.threads = make(map[*process][]object)
	}
	c.threads[p] = list
	return slices.Clone(list), nil
}

func classOf(o object) omis.Class {
	switch o := o.(type) {
	case *node:
		return omis.ClassNode
	case *process:
		return omis.ClassProcess
	case *thread:
		return omis.ClassThread
	case *csr:
		return omis.ClassCSR
	case *userEvent:
		return omis.ClassUserEvent
	case *item:
		return o.class.Class
	}
	return omis.ClassUndefined
}
