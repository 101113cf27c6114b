package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// While a locked list is executed no other list may be active on its nodes (OMIS 7.2.3),
// but programs run wherever threads come to them, and nothing holds these up. The list
// can tell by what it names alone: what programs do to other objects may as well have
// happened before it. So the monitor executes all requests that change what a locked
// list has named; they wait for it like any other.

// guard has the monitor execute from now on what changes the objects that a locked list
// names, as long as these exist.
func (x *execution) guard(steps []step) {
	var cells []service.Cell
	for i := range steps {
		cells = append(cells, x.cells(&steps[i])...)
	}
	if len(cells) == 0 {
		return
	}
	x.e.admin.Lock()
	defer x.e.admin.Unlock()
	for _, cell := range cells {
		x.e.guard(x.tool, cell)
	}
}

// cells are the objects that a step names and programs can change.
func (x *execution) cells(s *step) []service.Cell {
	if s.subject < 0 || isPlaced(s.service.Object) {
		return nil
	}
	c, failed := x.bound(s)
	if failed != nil {
		return nil
	}
	conv := conversions{tool: x.tool}
	objs, _ := conv.objects(c.args[s.subject], s.service.Params[s.subject])
	var cells []service.Cell
	for _, o := range objs {
		if it, ok := o.(*item); ok {
			if cell, ok := it.value.(service.Cell); ok {
				cells = append(cells, cell)
			}
		}
	}
	return cells
}

// guard: see execution.guard. The caller holds Engine.admin.
func (e *Engine) guard(t *Tool, cell service.Cell) {
	if e.guarded[cell] {
		return
	}
	e.guarded[cell] = true
	for _, o := range t.own(omis.ClassProcess) {
		o.(*process).evictUsers(e, cell, reason(inLockedList()))
	}
}

func inLockedList() error {
	return declined("a locked list names an object that it changes, and must not find it changed meanwhile")
}

// evictUsers moves the programs to the monitor that change an object.
func (p *process) evictUsers(e *Engine, cell service.Cell, why string) {
	if !p.feedsAny(cell) {
		return
	}
	e.evict(p, declined("%s", why), p.programsThat(func(s *subscription) bool {
		return slices.ContainsFunc(s.placed.feeds, func(f *feed) bool { return f.cell == cell })
	})...)
}

// isGuarded tells whether a program changes what a locked list has named.
func (e *Engine) isGuarded(steps []compiled) bool {
	return len(e.guarded) > 0 && slices.ContainsFunc(steps, func(s compiled) bool { return e.guarded[s.cell] })
}
