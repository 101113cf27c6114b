//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"

	"mirador/omis"
	"mirador/omis/place/kernel/pins"
	"mirador/omis/program"
)

var _ program.Keeper = (*Placer)(nil)

// Keep: see program.Keeper.
func (p *Placer) Keep(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == program.StoreTraces { // nothing keeps it
		return p.newTrail(id)
	}
	s, err := p.former(id, kind, key)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return s, nil
	}
	if s, err = p.newStore(id, kind); err != nil {
		return nil, err
	}
	s.note(key)
	return s, nil
}

// Recall: see program.Keeper.
func (p *Placer) Recall(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.former(id, kind, key)
	if s == nil || err != nil {
		return nil, err // a nil *store must not become a store
	}
	return s, nil
}

// former is what a former monitor has left under a key, nil if that is nothing. The
// caller holds mu.
func (p *Placer) former(id omis.ProcID, kind program.StoreKind, key string) (*store, error) {
	if !p.isHeir() {
		return nil, nil
	}
	if err := p.ready(); err != nil {
		return nil, err
	}
	for s, name := range p.left.stores {
		if name == key && s.target.proc == id && s.pool.form.kind == kind {
			delete(p.left.stores, s)
			return s, nil
		}
	}
	return nil, nil
}

// isHeir tells whether a former monitor has left anything, without taking anything from
// the kernel. The caller holds mu.
func (p *Placer) isHeir() bool {
	if p.heir.data == "" || p.heir.empty || p.opened {
		return p.opened
	}
	folder, err := pins.Of(p.heir.data)
	if err != nil {
		return false
	}
	p.heir.empty = len(folder.Names()) == 0 && len(p.heir.book.Keys(allRecords)) == 0
	return !p.heir.empty
}

// Meet: see program.Keeper. What a monitor leaves in the kernel is found there, whichever
// process it is about.
func (p *Placer) Meet(omis.ProcID) ([]program.Orphan, error) { return nil, nil }

// Settle: see program.Keeper.
func (p *Placer) Settle() ([]program.Orphan, error) {
	left, err := p.unwanted()
	if err != nil {
		return nil, err
	}
	orphans := left.orphans
	var placed []program.Placed
	for _, list := range left.placed {
		for _, pl := range list {
			orphans, placed = append(orphans, pl.orphan()), append(placed, pl)
		}
	}
	for _, l := range left.listeners {
		orphans, placed = append(orphans, l.orphan()), append(placed, l)
	}
	errs := []error{left.unmended, p.Remove(placed)}
	for s, key := range left.stores {
		orphans = append(orphans, program.Orphan{Proc: s.target.proc, What: "what was measured for " + key})
		errs = append(errs, s.Close())
	}
	return orphans, errors.Join(errs...)
}

// unwanted hands out what nobody has asked for.
func (p *Placer) unwanted() (left leftovers, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isHeir() {
		return left, nil
	}
	if err := p.ready(); err != nil {
		return left, fmt.Errorf("what a former monitor has left in the kernel cannot be looked after: %w", err)
	}
	left, p.left = p.left, leftovers{}
	return left, nil
}
