package placing

import (
	"slices"

	"mirador/omis/program"
	"mirador/omis/service"
)

// The number of executions of a program follows from what it counts and times. If a program only adds
// values that it loads from events, nothing shows the number; then it first adds 1 to a cell of ours.

// hitCount is such a cell. All programs that load values into one cell share one hitCount. Its only use is
// the number of executions.
type hitCount struct {
	of service.Cell
}

var _ service.Cell = (*hitCount)(nil)

// ofTool returns the object of a tool that a cell belongs to.
func ofTool(cell service.Cell) service.Cell {
	if h, ok := cell.(*hitCount); ok {
		return h.of
	}
	return cell
}

func (*hitCount) Kind() program.StoreKind   { return program.StoreSums }
func (*hitCount) Join(service.Store)        {}
func (*hitCount) Leave(service.Store) error { return nil }

// withHits adds a step that counts executions, if no other step shows their number.
func (x *Placing) withHits(steps []Step) []Step {
	if slices.ContainsFunc(steps, func(s Step) bool { return x.tells(s, steps) }) {
		return steps
	}
	cell := steps[0].Cell
	if x.hits[cell] == nil && cell != nil {
		h := &hitCount{of: cell}
		x.hits[cell] = h
		if k := x.kept[cell]; k != nil {
			x.kept[h] = &keeping{key: k.key + "/hits"}
		}
	}
	first := Step{Op: program.Op{Do: program.OpAdd, Value: 1}}
	if cell != nil {
		first.Cell = x.hits[cell]
	}
	return append([]Step{first}, steps...)
}

// tells reports whether a step shows how often its program is executed. It does not if values are loaded
// into the same sum.
func (x *Placing) tells(s Step, all []Step) bool {
	if s.Op.Do != program.OpAdd {
		return true
	}
	isLoaded := func(other Step) bool { return other.Cell == s.Cell && other.Op.Load.IsLoaded() }
	return !s.Op.Load.IsLoaded() && x.hits[s.Cell] == nil && !slices.ContainsFunc(all, isLoaded)
}

// ForgetCell is called when a cell is deleted.
func (x *Placing) ForgetCell(cell service.Cell) {
	delete(x.guarded, cell)
	x.unkeep(cell)
	if h := x.hits[cell]; h != nil {
		x.unkeep(h)
		delete(x.hits, cell)
	}
}
