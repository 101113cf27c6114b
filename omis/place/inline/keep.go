//go:build linux && amd64

package inline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/program"
)

var _ program.Keeper = (*Placer)(nil)

// Keep: see program.Keeper.
func (p *Placer) Keep(id omis.ProcID, kind program.StoreKind, key string) (_ program.Store, err error) {
	t, err := p.enter(id)
	if err != nil {
		return nil, err
	}
	defer t.release(t.hold(), &err)
	if s := t.reclaim(kind, key); s != nil {
		return s, nil
	}
	s := &store{target: t, kind: kind, key: key}
	if s.cell, err = t.memory.take(kindOf(kind), key); err != nil {
		return nil, errors.Join(program.Refuse(err), t.leave())
	}
	t.stores[s] = true
	return s, nil
}

// Recall: see program.Keeper. Stores of processes that have ended are lost: they were in the memory of the
// process.
func (p *Placer) Recall(id omis.ProcID, kind program.StoreKind, key string) (_ program.Store, err error) {
	if !p.mayHave(id) {
		return nil, nil
	}
	t, err := p.enter(id)
	var refusal *program.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer t.release(t.hold(), &err)
	if s := t.reclaim(kind, key); s != nil {
		return s, nil
	}
	return nil, t.leave()
}

// mapping is the name of the memory that processes share with a monitor.
const mapping = "/memfd:mirador patches"

// mayHave reports whether a process may have stores of a former monitor.
func (p *Placer) mayHave(id omis.ProcID) bool {
	p.mu.Lock()
	known := p.targets[id] != nil
	p.mu.Unlock()
	if known || proc.Alive(id) != nil {
		return known
	}
	maps, err := proc.Maps(id.PID)
	return err == nil && slices.ContainsFunc(maps, func(m proc.Mapping) bool { return strings.HasPrefix(m.Path, mapping) })
}

// reclaim returns the store of a key that a former monitor has left, nil if there is none. The store is
// another user of the target. The caller holds mu.
func (t *target) reclaim(kind program.StoreKind, key string) *store {
	if key == "" {
		return nil
	}
	i := slices.IndexFunc(t.orphans, func(o orphan) bool { return o.kind == kind && o.name == nameOf(key) })
	if i < 0 {
		return nil
	}
	s := t.orphans[i].store
	t.orphans = slices.Delete(t.orphans, i, i+1)
	s.key = key
	t.stores[s] = true
	return s
}

// Settle: see program.Keeper.
func (p *Placer) Settle() ([]program.Orphan, error) {
	p.mu.Lock()
	p.settled = true // in processes that are entered later, leftovers are not kept either
	p.mu.Unlock()
	var list []program.Orphan
	var errs []error
	for _, t := range p.all() {
		orphans, err := t.settle()
		list, errs = append(list, orphans...), append(errs, err)
	}
	return list, errors.Join(errs...)
}

// Meet: see program.Keeper.
func (p *Placer) Meet(id omis.ProcID) ([]program.Orphan, error) {
	if !p.mayHave(id) {
		return nil, nil
	}
	t, err := p.enter(id)
	if err != nil {
		return nil, err
	}
	orphans, err := t.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	return orphans, errors.Join(err, t.leave())
}

// settle removes what no request has adopted.
func (t *target) settle() (list []program.Orphan, err error) {
	defer t.release(t.hold(), &err)
	list, t.lost = t.lost, nil
	for _, l := range t.left {
		list = append(list, program.Orphan{Proc: t.proc, What: fmt.Sprintf("a program at %#x", l.addr)})
	}
	if err := t.dismiss(t.left); err != nil {
		return list, err
	}
	for _, o := range t.orphans {
		if name := o.word(); name != "" {
			list = append(list, program.Orphan{Proc: t.proc, What: "what was measured for " + name})
		}
		o.store.forgetPast()
		for _, c := range o.store.cells() {
			t.clear(c)
		}
	}
	t.orphans = nil
	return list, nil
}
