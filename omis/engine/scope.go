package engine

import (
	"context"
	"slices"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// find resolves a token within the tool's scope.
func (t *Tool) find(token omis.Token) (object, error) {
	if t.imaginary {
		if o := t.imagined(token); o != nil {
			return o, nil
		}
	}
	o := t.e.reg.lookup(token)
	if o == nil || !t.mayName(o) {
		return nil, unknownToken(token)
	}
	if !t.sees(o) {
		return nil, omis.Errorf(omis.UnknownObject, "%s is not attached to this tool", token)
	}
	return o, nil
}

// mayName reports whether a tool may name an object: nodes, processes and threads belong to all tools,
// objects of the monitor to one.
func (t *Tool) mayName(o object) bool {
	switch o := o.(type) {
	case *csr:
		return o.tool == t
	case *userEvent:
		return o.tool == t
	case *item:
		return o.tool == t
	}
	return true
}

// sees reports whether an object is in the scope (OMIS 5.5).
func (t *Tool) sees(o object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := o.(type) {
	case *machine:
		return slices.Contains(t.nodes, o)
	case *process:
		return slices.Contains(t.procs, o)
	case *thread:
		return slices.Contains(t.procs, o.proc) && !t.hides(o.token)
	case *queueObject:
		return slices.Contains(t.procs, o.proc)
	case *messageObject:
		return slices.Contains(t.nodes, o.node)
	}
	return true
}

// own lists the objects of a class that the tool is attached to, or has made.
func (t *Tool) own(class omis.Class) []object {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []object
	switch class {
	case omis.ClassNode:
		for _, n := range t.nodes {
			list = append(list, n)
		}
	case omis.ClassProcess:
		for _, p := range t.procs {
			list = append(list, p)
		}
		sortObjects(list)
	case omis.ClassCSR:
		for _, c := range t.csrs {
			list = append(list, c)
		}
	case omis.ClassUserEvent:
		for _, v := range t.events {
			list = append(list, v)
		}
	default:
		list = make([]object, 0, len(t.items[class])) // often many
		for _, it := range t.items[class] {
			list = append(list, it)
		}
	}
	return list
}

func unknownToken(token omis.Token) error {
	switch token.Class() {
	case omis.ClassUndefined:
		return omis.Errorf(omis.UnknownObject, "the token is undefined: there is no such object here")
	case "":
		return omis.Errorf(omis.UnknownObject, "no such token: %s", token)
	}
	return omis.Errorf(omis.UnknownObject, "no such %s token: %s", kindOf(token.Class()), token)
}

func kindOf(c omis.Class) string {
	switch c {
	case omis.ClassNode:
		return "node"
	case omis.ClassProcess:
		return "process"
	case omis.ClassThread:
		return "thread"
	case omis.ClassQueue:
		return "message queue"
	case omis.ClassMessage:
		return "message"
	case omis.ClassUserEvent:
		return "user event"
	case omis.ClassCSR:
		return "conditional request"
	}
	return string(c)
}

func (t *Tool) addItem(class omis.Class, value any) omis.Token {
	o := t.e.reg.add(class, func(i ident) object {
		return &item{ident: i, class: t.e.classes[class], tool: t, value: value}
	})
	t.keep(o, func() { t.items[class] = append(t.items[class], o.(*item)) })
	t.e.reg.generation.Add(1)
	return o.Token()
}

// keep enters a new object into the scope's tables. If the tool was finalized meanwhile, it makes the
// object's token unknown instead.
func (t *Tool) keep(o object, enter func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finalized {
		t.e.reg.remove(o.Token())
		return
	}
	enter()
}

func (t *Tool) removeItem(token omis.Token) {
	o, ok := t.e.reg.lookup(token).(*item)
	if !ok || o.tool != t {
		return
	}
	t.e.reg.remove(token)
	t.mu.Lock()
	t.items[o.class.Class] = slices.DeleteFunc(t.items[o.class.Class], func(other *item) bool { return other == o })
	t.mu.Unlock()
	t.e.reg.generation.Add(1)
	if cell, ok := o.value.(service.Cell); ok {
		t.e.admin.Lock()
		defer t.e.admin.Unlock()
		t.e.placing.AbandonCell(owner{t}, token, cell)
	}
}

// itemChanged adapts what depends on the contents of an extension's object.
func (t *Tool) itemChanged(token omis.Token) {
	o, ok := t.e.reg.lookup(token).(*item)
	if !ok || o.tool != t {
		return
	}
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	t.e.regroup(t, o)
}

// toolScope is the service.Scope of an extension's event source, and most of that of an execution.
type toolScope struct{ tool *Tool }

func (s toolScope) Add(c omis.Class, value any) omis.Token        { return s.tool.addItem(c, value) }
func (s toolScope) Remove(t omis.Token)                           { s.tool.removeItem(t) }
func (s toolScope) Changed(t omis.Token)                          { s.tool.itemChanged(t) }
func (s toolScope) Now() int64                                    { return s.tool.e.now() }
func (s toolScope) Machine(t omis.Token) (program.Machine, error) { return s.tool.e.machineOf(t) }

func (s toolScope) Request(ctx context.Context, text string, later func(omis.Reply)) (omis.Reply, error) {
	return s.tool.nested(ctx, text, &sink{callback: later}, nil)
}

// Threads implements service.Scope.
func (s toolScope) Threads(objects []omis.Value) ([]service.Thread, error) {
	c := conversions{tool: s.tool}
	found, failed := c.objects(omis.List(objects...), service.TokensParam("objects", omis.ClassThread))
	if len(failed) > 0 {
		return nil, omis.Errorf(failed[0].Status, "%s", failed[0].Msg)
	}
	return mapped(found, func(o object) service.Thread {
		t := o.(*thread)
		at := t.proc.at()
		return service.Thread{Token: t.token, Proc: t.proc.token, Machine: at.node, ID: at.id, TID: t.tid}
	}), nil
}
