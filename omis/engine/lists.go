package engine

import (
	"mirador/omis"
)

// touched returns the nodes that a list may touch, in their order. They may be too many, but never too few,
// because a list locks its nodes before it begins.
func (x *execution) touched(steps []step) []*machine {
	if len(x.e.nodes) == 1 {
		return x.e.nodes
	}
	marks := make(map[*machine]bool, len(x.e.nodes))
	if x.occ != nil {
		x.mark(marks, x.occ.Node)
	}
	for i := range steps {
		if s := &steps[i]; !s.do.free {
			x.markStep(marks, s)
		}
	}
	list := make([]*machine, 0, len(marks))
	for _, n := range x.e.nodes {
		if marks[n] {
			list = append(list, n)
		}
	}
	return list
}

// markStep marks the nodes of the objects that a service names. Services on other things may have any
// effect, so they touch all nodes. The same holds for services that lead to other lists, if the lock of
// this list covers those: their nodes must be locked in advance, or two lists could wait for each other.
func (x *execution) markStep(marks map[*machine]bool, s *step) {
	if s.subject < 0 || !isPlaced(s.service.Object) || s.do.wide || s.do.leads && x.locked {
		x.markAll(marks)
		return
	}
	named := s.args[s.subject]
	if named.Kind != omis.KindList {
		named = omis.List(named)
	}
	if len(named.List) == 0 {
		for _, o := range x.tool.own(omis.ClassNode) {
			marks[o.(*machine)] = true
		}
		marks[x.e.home] = marks[x.e.home] || s.service.Object == omis.ClassNode
	}
	for _, v := range named.List {
		if v.Kind == omis.KindParam {
			v, _ = contextValue(x.csr, x.occ, v.Str)
		}
		x.mark(marks, v.Token())
	}
}

func (x *execution) mark(marks map[*machine]bool, t omis.Token) {
	switch o := x.e.reg.lookup(t).(type) {
	case nil:
	case *item:
		x.markAll(marks)
	default:
		if n := nodeOf(o); n != nil {
			marks[n] = true
		}
	}
}

func (x *execution) markAll(marks map[*machine]bool) {
	for _, n := range x.e.nodes {
		marks[n] = true
	}
}

// isPlaced reports whether objects of a class live on nodes.
func isPlaced(c omis.Class) bool {
	switch c {
	case omis.ClassNode, omis.ClassProcess, omis.ClassThread, omis.ClassQueue, omis.ClassMessage:
		return true
	}
	return false
}

// lock waits until the list may be executed: a locked list alone on all nodes that it touches, other lists
// concurrently. Nodes are locked in their order.
func (x *execution) lock() {
	if x.covered {
		return
	}
	for _, n := range x.nodes {
		if x.locked {
			n.lists.Lock()
		} else {
			n.lists.RLock()
		}
	}
}

func (x *execution) unlock() {
	if x.covered {
		return
	}
	for _, n := range x.nodes {
		if x.locked {
			n.lists.Unlock()
		} else {
			n.lists.RUnlock()
		}
	}
}

// unlockForNested releases shared locks while other lists run for this one, because a locked list among
// them must be alone. Exclusive locks are kept; they cover the other lists.
func (x *execution) unlockForNested() {
	if !x.locked {
		x.unlock()
	}
}

func (x *execution) lockAfterNested() {
	if !x.locked {
		x.lock()
	}
}

// later keeps an event that the engine causes until the step is done. Nodes that work concurrently may call
// it.
func (x *execution) later(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.raise = append(x.raise, f)
}

// raiseAll executes the lists that wait for such events.
func (x *execution) raiseAll() {
	if len(x.raise) == 0 {
		return
	}
	list := x.raise
	x.raise = nil
	x.unlockForNested()
	defer x.lockAfterNested()
	for _, f := range list {
		f()
	}
}
