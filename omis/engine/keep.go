package engine

import (
	"errors"
	"slices"
	"time"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A tool's object can be kept: what programs measure for it, they measure in stores that
// outlive the monitor, for as long as the object exists. A later monitor makes an object
// of the same key, and what has been measured meanwhile is the object's.

// keeping is what makes an object one that is kept; Engine.admin guards it.
type keeping struct {
	key      string
	feeds    []*feed // in which its rows are, also of processes that have ended
	inMemory bool    // whether the journal says that values are in the monitor's memory
}

// Keep makes what programs measure for an object outlive the monitor, where placements
// can do that (program.Keeper). The object adopts what a former monitor left under the
// key, in the processes of the tool's scope and in those that have ended. lost is when
// the former monitor was found dead, if values of the key were in its memory.
func (t *Tool) Keep(object omis.Token, key string, ended ...omis.ProcID) (lost time.Time, err error) {
	cell, ok := t.cell(object)
	if !ok {
		return lost, unknownToken(object)
	}
	e := t.e
	e.admin.Lock()
	defer e.admin.Unlock()
	k := &keeping{key: key}
	e.kept[cell] = k
	var procs []*process
	for _, o := range t.own(omis.ClassProcess) {
		procs = append(procs, o.(*process))
	}
	for _, id := range ended {
		procs = append(procs, e.reg.ghost(place{e.home, id}))
	}
	var errs []error
	for _, p := range procs {
		errs = append(errs, e.recall(p, cell, k))
	}
	return e.losses[key], errors.Join(errs...)
}

// inMemory records that values of a cell are in the monitor's memory, if the cell is
// kept: a SIGKILL ends them, and the next monitor must say so. The caller holds
// Engine.admin, and calls it before the memory has the first value.
func (e *Engine) inMemory(cell service.Cell) {
	if k := e.kept[cell]; k != nil && !k.inMemory && e.journal != nil {
		k.inMemory = true
		e.journal.InMemory(k.key)
	}
}

// recall joins what a former monitor has left in a process to a cell.
func (e *Engine) recall(p *process, cell service.Cell, k *keeping) error {
	var errs []error
	for _, keeper := range p.node().keepers() {
		store, err := keeper.Recall(p.at().id, cell.Kind(), k.key)
		if store != nil {
			e.newFeed(keeper, p, cell, store).recalled = true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// newStore makes the store of a cell in a process.
func (e *Engine) newStore(placer program.Placer, p *process, cell service.Cell) (program.Store, error) {
	keeper, able := placer.(program.Keeper)
	if k := e.kept[cell]; k != nil && able {
		return keeper.Keep(p.at().id, cell.Kind(), k.key)
	}
	return placer.NewStore(p.at().id, cell.Kind())
}

func canKeep(placer program.Placer) bool {
	_, able := placer.(program.Keeper)
	return able
}

// unkeep gives up that an object is kept; what was measured stays in it.
func (e *Engine) unkeep(cell service.Cell) {
	k := e.kept[cell]
	if k == nil {
		return
	}
	delete(e.kept, cell)
	delete(e.losses, k.key)
	if e.journal != nil {
		e.journal.Unkept(k.key)
	}
	for _, f := range k.feeds {
		if f.users == 0 {
			f.end()
		}
	}
}

// unkeepIn gives up what a tool keeps in a process that it detaches from.
func (e *Engine) unkeepIn(t *Tool, p *process) {
	for key, f := range p.feeds {
		if k := e.kept[key.cell]; k != nil && f.users == 0 && slices.Contains(k.feeds, f) && t.has(key.cell) {
			e.inMemory(key.cell)
			k.drop(f)
			f.end()
		}
	}
}

// nameRows gives the rows that are kept of a process their tokens, while those of its
// threads are known.
func (e *Engine) nameRows(p *process) {
	for _, f := range p.feeds {
		if _, err := f.Rows(); err != nil {
			e.log.Warn("cannot read what was measured in a process that has ended", "process", p.token, "error", err)
		}
	}
}

func (k *keeping) drop(f *feed) {
	k.feeds = slices.DeleteFunc(k.feeds, func(other *feed) bool { return other == f })
}

// has tells whether a cell is an object of the tool, or counts the hits of what changes one.
func (t *Tool) has(cell service.Cell) bool {
	if h, ok := cell.(*hitCount); ok {
		cell = h.of
	}
	return slices.Contains(t.cells(), cell)
}

// cells are the tool's objects that programs can change.
func (t *Tool) cells() []service.Cell { return valuesOf[service.Cell](t) }

// valuesOf are the values of a tool's objects that are of a type.
func valuesOf[V any](t *Tool) (list []V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, items := range t.items {
		for _, it := range items {
			if v, ok := it.value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// Settle takes away what former monitors have left and nobody keeps, and says what that
// was. Who keeps something has said so before.
func (e *Engine) Settle() ([]program.Orphan, error) {
	e.admin.Lock()
	defer e.admin.Unlock()
	var all []program.Orphan
	var errs []error
	for _, n := range e.nodes {
		for _, keeper := range n.keepers() {
			list, err := keeper.Settle()
			all, errs = append(all, list...), append(errs, err)
		}
	}
	e.forgetLosses()
	e.settled = true
	for _, p := range e.reg.attached() {
		e.meet(p)
	}
	return all, errors.Join(errs...)
}

// forgetLosses erases the losses under keys that no object of this monitor has.
func (e *Engine) forgetLosses() {
	keys := make(map[string]bool)
	for _, k := range e.kept {
		keys[k.key] = true
	}
	for key := range e.losses {
		if !keys[key] {
			delete(e.losses, key)
			if e.journal != nil {
				e.journal.Unkept(key)
			}
		}
	}
}

// meet takes away what former monitors have left in a process and nobody keeps. Until
// Settle is called, somebody may.
func (e *Engine) meet(p *process) {
	if !e.settled {
		return
	}
	for _, keeper := range p.node().keepers() {
		orphans, err := keeper.Meet(p.at().id)
		if err != nil {
			e.log.Warn("cannot take away what a former monitor has left", "process", p.token, "error", err)
		}
		for _, o := range orphans {
			e.log.Info("taken away what a former monitor has left", "process", p.token, "what", o.What)
		}
	}
}
