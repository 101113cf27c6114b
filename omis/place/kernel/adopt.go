//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
)

// adoption opens what a former monitor left, while its programs continue to run. The caller holds
// memory.mu.
type adoption struct {
	memory  *memory
	keeper  *keeper
	uprobes *uprobes
	events  *events
	left    *leftovers

	used    map[code.Unit]int // blocks of the slab that are in use, with their lengths
	targets map[code.Unit]*target
	stores  map[code.Unit]*store
}

// adopt opens what a former monitor left. It returns false if there is nothing, or if the state is of
// another version or cannot be opened; then it removes everything.
func (p *Placer) adopt() bool {
	k := p.keeper
	var head persist.Head
	p.left.unmended = mendAll(k.state, k.client, p.uprobes.codes)
	known, err := k.journal.Get(persist.HeadKey, &head)
	if known && err == nil {
		err = fmt.Errorf("it is of another version")
		if head == persist.HeadOf(&p.memory.layout) {
			a := &adoption{
				memory: p.memory, keeper: k, uprobes: p.uprobes, events: &p.events, left: &p.left,
				used: make(map[code.Unit]int), targets: make(map[code.Unit]*target), stores: make(map[code.Unit]*store),
			}
			err = a.open()
		}
		if err == nil {
			return true
		}
	}
	if known {
		p.left = leftovers{unmended: p.left.unmended, orphans: []program.Orphan{{What: fmt.Sprintf("everything a former monitor had in the kernel (%v)", err)}}}
	}
	p.memory.targets, p.memory.pools = make(map[omis.ProcID]*target), [code.RowKinds]*pool{}
	err = k.state.Wipe()
	if k.open(); err != nil { // Wipe has removed the folder, so open makes it again
		k.fails(err)
		k.state = nil
	}
	return false
}

func (a *adoption) open() error {
	a.left.stores, a.left.placed = make(map[*store]string), make(map[where][]*placed)
	if err := a.memory.reopen(a.keeper.state.Folder); err != nil {
		return err
	}
	if err := a.openTargets(); err != nil {
		return err
	}
	if err := a.openStores(); err != nil {
		return err
	}
	if err := persist.Each(a.keeper.state, persist.Pages, a.openPage); err != nil {
		return err
	}
	if err := a.openBunches(); err != nil {
		return err
	}
	if err := a.events.open(); err != nil {
		return err
	}
	if err := a.openListeners(); err != nil {
		return err
	}
	a.memory.slab.keepOnly(a.used)
	for _, q := range a.memory.pools {
		if q == nil {
			continue
		}
		q.recount()
		if err := q.provideLocked(q.Form.Spare); err != nil {
			return err
		}
	}
	for _, t := range a.targets {
		if t.users == 0 {
			t.users++
			t.leave()
		}
	}
	err := a.sweep()
	for _, list := range a.left.placed {
		for _, pl := range list {
			pl.tell() // the spot may still name the replaced link, which sweep has removed
		}
	}
	return err
}

// openTargets makes the targets.
func (a *adoption) openTargets() error {
	return persist.Each(a.keeper.state, persist.Targets, func(n uint32, r persist.Target) error {
		t := newTarget(a.memory, r.Proc, code.Unit(n))
		a.targets[t.gone], a.used[t.gone] = t, 1
		if a.memory.current(r.Proc) == nil {
			a.memory.targets[r.Proc] = t
		}
		return nil
	})
}

// openStores makes the stores.
func (a *adoption) openStores() error {
	return persist.Each(a.keeper.state, persist.Stores, func(n uint32, r persist.Store) error {
		t, q := a.targets[r.Target], a.memory.pools[r.Kind]
		if t == nil || q == nil { // the monitor was killed before it used the store
			return persist.Delete(a.keeper.state, persist.Stores, n)
		}
		s := &store{memory: a.memory, target: t, pool: q, cell: code.Unit(n), kept: true}
		t.users++
		a.used[s.cell], a.stores[s.cell] = 1, s
		q.stores[n], a.left.stores[s] = s, r.Key
		return nil
	})
}

// openPage reads a page of past rows.
func (a *adoption) openPage(n uint32, r persist.Page) error {
	a.keeper.pages.Store(max(a.keeper.pages.Load(), n))
	s := a.stores[r.Store]
	if s == nil || len(r.Rows) > 0 && r.Rows[0].At(code.RowEpoch) != s.word(code.CellEpoch) {
		return persist.Delete(a.keeper.state, persist.Pages, n)
	}
	if r.All {
		if err := s.dropPages(); err != nil { // the monitor was killed before it deleted them
			return err
		}
		s.past, s.onPage = nil, nil
	}
	s.pages = append(s.pages, n)
	for i := range r.Rows {
		var buckets program.Distribution
		if i < len(r.Buckets) {
			buckets = r.Buckets[i]
		}
		s.addPast(&r.Rows[i], buckets)
		s.onPage = append(s.onPage, r.Rows[i].Key())
	}
	return nil
}

// openBunches makes the bunches and their members.
func (a *adoption) openBunches() error {
	bunches := make(map[uint32]*bunch)
	spots := make(map[code.Unit]*placed)
	return persist.Each(a.keeper.state, persist.Bunches, func(n uint32, r persist.Bunch) error {
		a.uprobes.serial = max(a.uprobes.serial, n)
		b := &bunch{uprobes: a.uprobes, target: a.targets[r.Target], path: r.Path, serial: n}
		var err error
		if b.target != nil {
			b.link, err = a.keeper.state.Folder.Link(persist.Name(persist.Link, int(n)))
		}
		if b.target == nil || err != nil { // the monitor was killed before it pinned the link
			return persist.Delete(a.keeper.state, persist.Bunches, n)
		}
		if b.target.isGone() || proc.Alive(b.target.proc) != nil {
			return a.removeOutdated(b, r.Members)
		}
		if b.shape, err = a.uprobes.load(&code.Shape{Steps: r.Steps, Clocks: r.Clocks, Kinds: r.Kinds, Sources: r.Sources, Loads: r.Loads, Threads: r.Threads, When: r.When}); err != nil {
			return err
		}
		for _, m := range r.Members {
			if spots[m.Spot] == nil {
				spots[m.Spot] = a.openSpot(b, m)
				a.used[m.Spot] = spots[m.Spot].units()
			}
			b.members = append(b.members, spots[m.Spot])
		}
		bunches[n] = b
		if former := bunches[r.After]; former != nil {
			return a.completeReplacement(b, former)
		}
		return nil
	})
}

// removeOutdated removes uprobes from a process that has ended or executes another program. If that
// program maps the same file, the kernel has set the uprobes in it.
func (a *adoption) removeOutdated(b *bunch, members []persist.Member) error {
	for _, m := range members {
		a.left.orphans = append(a.left.orphans, program.Orphan{
			Proc: b.target.proc,
			What: fmt.Sprintf("a program at %#x, where the process does not execute that any more", a.siteOf(b, m).asked),
		})
	}
	return errors.Join(a.keeper.forgetBunch(b.serial), b.takeOut(b.gone()))
}

func (a *adoption) siteOf(b *bunch, m persist.Member) site {
	s := site{path: b.path, file: m.File, offset: m.Offset, code: m.Code}
	s.addr, s.asked = a.memory.slab.SpotAddrs(m.Spot)
	_, s.quick = measure(m.Code)
	return s
}

// openSpot makes the member of a bunch. Its parameters are in the slab.
func (a *adoption) openSpot(b *bunch, m persist.Member) *placed {
	pl := &placed{
		uprobes: a.uprobes, target: b.target, site: a.siteOf(b, m), shape: b.shape, spot: m.Spot,
		bunch: b, active: a.memory.slab.SpotIsActive(m.Spot), lasts: true,
	}
	b.target.users++
	b.target.addSite(&pl.site)
	a.left.add(pl)
	return pl
}

// completeReplacement completes the replacement of a bunch by another one (bunch.without), which the
// death of the monitor interrupted. b has all members of the former bunch except those that were to be
// removed.
func (a *adoption) completeReplacement(b, former *bunch) error {
	for _, pl := range b.members {
		pl.bunch, pl.former = b, former.serial
		pl.tell()
	}
	if err := former.close(former.gone()); err != nil {
		return err
	}
	for _, pl := range b.members {
		pl.former = 0
		pl.tell()
	}
	for _, pl := range former.members {
		if pl.bunch == former {
			delete(a.used, pl.spot)
			a.memory.slab.SetSpotLinks(pl.spot, 0, 0)
			pl.target.removeSite(&pl.site)
			pl.target.users--
			a.left.remove(pl)
		}
	}
	return nil
}

// sweep removes objects without a record: the monitor was killed while it pinned or removed them.
func (a *adoption) sweep() error {
	ours := map[string]bool{persist.Slab: true, persist.Running: true, persist.Exec: true}
	for _, q := range a.memory.pools {
		if q == nil {
			continue
		}
		for _, name := range []string{persist.Index, persist.Deep, persist.Chunks, persist.Ring} {
			ours[q.name(name)] = true
		}
		for i := range q.memory {
			ours[q.name(persist.Chunk, i)] = true
		}
	}
	for _, list := range a.left.placed {
		for _, pl := range list {
			ours[persist.Name(persist.Link, int(pl.bunch.serial))] = true
		}
	}
	var errs []error
	for _, name := range a.keeper.state.Folder.Names() {
		if !ours[name] && !persist.IsOfEvents(name) {
			errs = append(errs, a.keeper.state.Remove(name))
		}
	}
	return errors.Join(errs...)
}
