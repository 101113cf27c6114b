package placing

import (
	"slices"

	"mirador/omis/service"
)

// While a locked list is executed, no other list may be active on its nodes (OMIS 7.2.3). Programs run at
// any time. A locked list notices this only in objects that it names: changes of other objects could as
// well have happened before it. So the monitor executes all requests that change an object which a locked
// list has named; they wait for the list like any other request.

// Guard makes the monitor execute requests that change a cell from now on, as long as the cell exists.
func (x *Placing) Guard(t Tool, cell service.Cell) {
	if x.guarded[cell] {
		return
	}
	x.guarded[cell] = true
	for _, p := range t.Processes() {
		p.evictUsers(x, cell, Reason(inLockedList()))
	}
}

func inLockedList() error {
	return Declined("a locked list names an object that it changes, and must not find it changed meanwhile")
}

// evictUsers evicts programs that change a cell.
func (p *Process) evictUsers(x *Placing, cell service.Cell, why string) {
	if !p.feedsAny(cell) {
		return
	}
	x.evict(p, Declined("%s", why), p.programsThat(func(s *Subscription) bool {
		return slices.ContainsFunc(s.placed.feeds, func(f *feed) bool { return f.cell == cell })
	})...)
}

// isGuarded reports whether a program changes a cell that a locked list has named.
func (x *Placing) isGuarded(steps []Step) bool {
	return len(x.guarded) > 0 && slices.ContainsFunc(steps, func(s Step) bool { return x.guarded[s.Cell] })
}
