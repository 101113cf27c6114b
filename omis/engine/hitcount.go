package engine

import (
	"slices"

	"mirador/omis/program"
	"mirador/omis/service"
)

// How often a program is executed is told by what it counts and times anyway. Where all
// that it does is to add what it loads from events, nothing tells: so it counts its hits
// first, in a cell of the engine's own.

// hitCount is such a cell: one for all programs that load something into another one. It
// has nothing for anybody to read but how often they were executed.
type hitCount struct {
	of service.Cell
}

var _ service.Cell = (*hitCount)(nil)

func (*hitCount) Kind() program.StoreKind   { return program.StoreSums }
func (*hitCount) Join(service.Store)        {}
func (*hitCount) Leave(service.Store) error { return nil }

// withHits adds to a program that it counts its hits, if nothing else tells how many there
// are. The caller holds Engine.admin.
func (e *Engine) withHits(steps []compiled) []compiled {
	if slices.ContainsFunc(steps, func(s compiled) bool { return e.tells(s, steps) }) {
		return steps
	}
	cell := steps[0].cell
	if e.hits[cell] == nil && cell != nil {
		h := &hitCount{of: cell}
		e.hits[cell] = h
		if k := e.kept[cell]; k != nil {
			e.kept[h] = &keeping{key: k.key + "/hits"}
		}
	}
	first := compiled{op: program.Op{Do: program.OpAdd, Value: 1}}
	if cell != nil {
		first.cell = e.hits[cell]
	}
	return append([]compiled{first}, steps...)
}

// tells tells whether a step tells how often its program is executed: it does not if
// something is loaded into the same sum.
func (e *Engine) tells(s compiled, all []compiled) bool {
	if s.op.Do != program.OpAdd {
		return true
	}
	isLoaded := func(other compiled) bool { return other.cell == s.cell && other.op.Load.IsLoaded() }
	return !s.op.Load.IsLoaded() && e.hits[s.cell] == nil && !slices.ContainsFunc(all, isLoaded)
}

// forgetHits is for a cell that is no more.
func (e *Engine) forgetHits(cell service.Cell) {
	if h := e.hits[cell]; h != nil {
		e.unkeep(h)
		delete(e.hits, cell)
	}
}
