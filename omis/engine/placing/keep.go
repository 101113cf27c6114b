package placing

import (
	"errors"
	"slices"
	"time"

	"mirador/omis/program"
	"mirador/omis/service"
)

// An object of a tool can be kept: then programs measure for it in stores that outlive the monitor, as long
// as the object exists. If the next monitor makes an object with the same key, the object adopts these
// stores.

// keeping describes a cell that is kept.
type keeping struct {
	key      string
	feeds    []*feed // feeds with its rows, including those of processes that have ended
	inMemory bool    // the journal says that values are in the monitor's memory
}

// Keep makes what programs measure for a cell outlive the monitor, in placements that can do that
// (program.Keeper). The cell adopts what a former monitor left under the key in the processes. lost is when the
// former monitor was found dead, if values of the key were in its memory.
func (x *Placing) Keep(cell service.Cell, key string, procs []*Process) (lost time.Time, err error) {
	k := &keeping{key: key}
	x.kept[cell] = k
	var errs []error
	for _, p := range procs {
		errs = append(errs, x.recall(p, cell, k))
	}
	return x.losses[key], errors.Join(errs...)
}

// RecallLoss records when the values that a former monitor held in memory under a key were lost. Keep returns it.
func (x *Placing) RecallLoss(key string, at time.Time) {
	if x.losses == nil {
		x.losses = make(map[string]time.Time)
	}
	x.losses[key] = at
}

// inMemory records that values of a kept cell are in the monitor's memory: a SIGKILL loses them, and the
// next monitor must report that. It is called before the memory has the first value.
func (x *Placing) inMemory(cell service.Cell) {
	if k := x.kept[cell]; k != nil && !k.inMemory && x.journal != nil {
		k.inMemory = true
		x.journal.InMemory(k.key)
	}
}

// recall joins stores that a former monitor has left in a process to a cell.
func (x *Placing) recall(p *Process, cell service.Cell, k *keeping) error {
	var errs []error
	for _, keeper := range p.machine().keepers() {
		store, err := keeper.Recall(p.id(), cell.Kind(), k.key)
		if store != nil {
			x.newFeed(keeper, p, cell, store).recalled = true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// newStore makes the store of a cell in a process.
func (x *Placing) newStore(placer program.Placer, p *Process, cell service.Cell) (program.Store, error) {
	keeper, able := placer.(program.Keeper)
	if k := x.kept[cell]; k != nil && able {
		return keeper.Keep(p.id(), cell.Kind(), k.key)
	}
	return placer.NewStore(p.id(), cell.Kind())
}

func canKeep(placer program.Placer) bool {
	_, able := placer.(program.Keeper)
	return able
}

// unkeep ends the keeping of a cell. What was measured stays in the cell.
func (x *Placing) unkeep(cell service.Cell) {
	k := x.kept[cell]
	if k == nil {
		return
	}
	delete(x.kept, cell)
	delete(x.losses, k.key)
	if x.journal != nil {
		x.journal.Unkept(k.key)
	}
	for _, f := range k.feeds {
		if f.users == 0 {
			f.end()
		}
	}
}

// UnkeepIn ends the keeping of a tool's cells in a process that the tool detaches from.
func (x *Placing) UnkeepIn(t Tool, p *Process) {
	for key, f := range p.feeds {
		if k := x.kept[key.cell]; k != nil && f.users == 0 && slices.Contains(k.feeds, f) && t.Has(ofTool(key.cell)) {
			x.inMemory(key.cell)
			k.drop(f)
			f.end()
		}
	}
}

// NameRows gives tokens to the threads of kept rows of a process that ends, while its threads are known.
func (x *Placing) NameRows(p *Process) {
	for _, f := range p.feeds {
		if _, err := f.Rows(); err != nil {
			x.log.Warn("cannot read what was measured in a process that has ended", "process", p.Token, "error", err)
		}
	}
}

func (k *keeping) drop(f *feed) {
	k.feeds = slices.DeleteFunc(k.feeds, func(other *feed) bool { return other == f })
}

// Settle removes what former monitors have left and no cell has adopted, and reports what that was. All
// cells that are kept have been made before.
func (x *Placing) Settle(nodes []*Machine) ([]program.Orphan, error) {
	var all []program.Orphan
	var errs []error
	for _, n := range nodes {
		for _, keeper := range n.keepers() {
			list, err := keeper.Settle()
			all, errs = append(all, list...), append(errs, err)
		}
	}
	x.forgetLosses()
	x.settled = true
	for _, p := range x.host.Attached() {
		x.Meet(p)
	}
	return all, errors.Join(errs...)
}

// forgetLosses erases the losses of keys that no cell has.
func (x *Placing) forgetLosses() {
	keys := make(map[string]bool)
	for _, k := range x.kept {
		keys[k.key] = true
	}
	for key := range x.losses {
		if !keys[key] {
			delete(x.losses, key)
			if x.journal != nil {
				x.journal.Unkept(key)
			}
		}
	}
}

// Meet removes what former monitors have left in a process and no cell has adopted. Before Settle it does
// nothing, because a cell may still adopt it.
func (x *Placing) Meet(p *Process) {
	if !x.settled {
		return
	}
	for _, keeper := range p.machine().keepers() {
		orphans, err := keeper.Meet(p.id())
		if err != nil {
			x.log.Warn("cannot take away what a former monitor has left", "process", p.Token, "error", err)
		}
		for _, o := range orphans {
			x.log.Info("taken away what a former monitor has left", "process", p.Token, "what", o.What)
		}
	}
}
