//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mirador/omis"
	"mirador/omis/host/tracepoint"
	"mirador/omis/program"
)

// leftovers are what a former monitor has left, as if it were ours, until somebody asks
// for it. Placer.mu guards them.
type leftovers struct {
	stores    map[*store]string // with their keys
	placed    map[where][]*placed
	listeners []*listener
	orphans   []program.Orphan // what was taken away at once
	unmended  error            // why uprobes stand that nobody has set
}

// where is an address of a process.
type where struct {
	proc omis.ProcID
	addr uint64
}

// takeOver makes a former monitor's objects ours, if there are any of the shape that
// ours have. Else what there is goes. The caller holds mu.
func (p *Placer) takeOver(set *tracepoint.Set) bool {
	e := p.estate
	var head headRecord
	p.left.unmended = e.mend(p.codes)
	known, err := e.book.Get(headKey, &head)
	if known && err == nil {
		err = fmt.Errorf("it is of another version")
		if head.Shape == p.layout.shape() {
			err = p.openLeft(set)
		}
		if err == nil {
			return true
		}
	}
	if known {
		p.left = leftovers{unmended: p.left.unmended, orphans: []program.Orphan{{What: fmt.Sprintf("everything a former monitor had in the kernel (%v)", err)}}}
	}
	p.targets, p.pools = make(map[omis.ProcID]*target), pools{}
	err = e.wipe()
	if p.openEstate(); err != nil { // the folder went, too
		p.fails(err)
		p.estate = nil
	}
	return false
}

// openLeft opens everything. Programs run meanwhile.
func (p *Placer) openLeft(set *tracepoint.Set) error {
	p.left.stores, p.left.placed = make(map[*store]string), make(map[where][]*placed)
	if err := p.openFormer(set); err != nil {
		return err
	}
	used := make(map[unit]int)
	targets, err := p.openTargets(used)
	if err != nil {
		return err
	}
	stores, err := p.openStores(targets, used)
	if err != nil {
		return err
	}
	if err := p.openBunches(targets, used); err != nil {
		return err
	}
	if err := p.openEvents(set); err != nil {
		return err
	}
	if err := p.openListeners(stores, used); err != nil {
		return err
	}
	p.slab.keepOnly(used)
	for _, q := range p.pools {
		if q == nil {
			continue
		}
		if err := errors.Join(q.recount(), q.provideLocked(q.form.spare)); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if t.users == 0 {
			t.users++
			t.leave()
		}
	}
	err = p.estate.sweep(p)
	for _, list := range p.left.placed {
		for _, pl := range list {
			pl.tell() // a former link may have been swept out just now
		}
	}
	return err
}

// openFormer opens what all programs share.
func (p *Placer) openFormer(set *tracepoint.Set) (err error) {
	folder := p.estate.folder
	words, err := folder.Map(slabName)
	if err != nil {
		return err
	}
	set.Add(words)
	p.slab = &slab{words: words, next: 1}
	if p.slab.bytes, err = mapShared(words, slabUnits*unitSize); err != nil {
		return err
	}
	if p.running, err = folder.Map(runningName); err != nil {
		return err
	}
	set.Add(p.running)
	exec, err := folder.Link(execName)
	if err != nil {
		return err
	}
	set.Add(exec)
	for kind := range forms {
		if folder.Has(nameOf(indexName, kind)) {
			if p.pools[kind], err = openPool(set, &forms[kind], p.estate); err != nil {
				return err
			}
		}
	}
	return nil
}

// openPool opens the pool of a former monitor.
func openPool(set *tracepoint.Set, f *form, e *estate) (p *pool, err error) {
	p = &pool{form: f, estate: e, stores: make(map[uint32]*store), sweepAt: f.worthSweeping()}
	kind := int(f.kind)
	if p.index, err = e.folder.Map(nameOf(indexName, kind)); err != nil {
		return nil, err
	}
	set.Add(p.index)
	if p.chunks, err = e.folder.Map(nameOf(chunksName, kind)); err != nil {
		return nil, err
	}
	set.Add(p.chunks)
	if f.deep {
		if p.deep, err = e.folder.Map(nameOf(deepName, kind)); err != nil {
			return nil, err
		}
		set.Add(p.deep)
	}
	if err := p.openPassing(set); err != nil {
		return nil, err
	}
	if p.ring.words, err = e.folder.Map(nameOf(ringName, kind)); err != nil {
		return nil, err
	}
	set.Add(p.ring.words)
	if p.ring.bytes, err = mapShared(p.ring.words, ringEntries+4*ringSize); err != nil {
		return nil, err
	}
	return p, p.openChunks()
}

func (p *pool) openChunks() error {
	for {
		name := nameOf(chunkName, int(p.form.kind), len(p.memory))
		if !p.estate.folder.Has(name) {
			return nil
		}
		m, err := p.estate.folder.Map(name)
		if err != nil {
			return err
		}
		b, err := mapShared(m, p.form.chunkSize())
		if err == nil {
			err = p.chunks.Put(uint32(len(p.memory)), m) // it may have been pinned, and no more
		}
		if err := errors.Join(err, m.Close()); err != nil {
			return err
		}
		p.memory = append(p.memory, b)
	}
}

// doubt is how long a row is waited for that was taken out of the ring, it seems, and
// belongs to nobody: the program that has taken it says for whom a moment later, if it
// is not kept waiting in between.
const doubt = 2 * time.Second

// recount finds out whose rows are whose. What is in the ring now will be found there
// when it is taken.
func (p *pool) recount() error {
	p.ring.seen = wordIn(p.ring.bytes, ringHead).Load()
	ready := make(map[uint32]bool)
	for i, tail := p.ring.seen, wordIn(p.ring.bytes, ringTail).Load(); i < tail; i++ {
		ready[p.ring.at(i)] = true
	}
	p.doubtEnd = time.Now().Add(doubt)
	gone := make(map[key]bool)
	for _, s := range p.stores {
		for _, k := range s.written {
			gone[k] = true
		}
		s.written = nil
	}
	for n := range uint32(len(p.memory)) << p.form.chunk {
		switch r := p.row(n); {
		case ready[n]:
		case r.word(rowOwner) == 0:
			p.doubtful = append(p.doubtful, n)
		case p.stores[r.key().Cell] == nil || gone[r.key()]:
			p.known++
			p.release(n)
		default:
			p.claim(n)
		}
	}
	return nil
}

// settleDoubts looks at rows that were free or taken. The caller holds mu.
func (p *pool) settleDoubts() {
	if len(p.doubtful) == 0 {
		return
	}
	p.doubtful = slices.DeleteFunc(p.doubtful, p.claim)
	if time.Now().Before(p.doubtEnd) {
		return
	}
	for _, n := range p.doubtful {
		p.row(n).clear() // it may have been left half cleared
	}
	p.free = append(p.free, p.doubtful...)
	p.doubtful = nil
}

// openTargets makes the targets, by the units that say whether they are gone.
func (p *Placer) openTargets(used map[unit]int) (map[unit]*target, error) {
	targets := make(map[unit]*target)
	err := each(p.estate, targetPrefix, func(n int, r targetRecord) error {
		t := &target{placer: p, proc: r.Proc, gone: unit(n), sites: make(map[uint64]uprobes), alive: make(map[thread]bool)}
		targets[t.gone], used[t.gone] = t, 1
		if before := p.targets[r.Proc]; before == nil || before.isGone() {
			p.targets[r.Proc] = t
		}
		return nil
	})
	return targets, err
}

// openStores makes the stores, and reads what was written down of them.
func (p *Placer) openStores(targets map[unit]*target, used map[unit]int) (map[unit]*store, error) {
	stores := make(map[unit]*store)
	err := each(p.estate, storePrefix, func(n int, r storeRecord) error {
		t, q := targets[r.Target], p.pools[r.Kind]
		if t == nil || q == nil {
			return p.estate.book.Delete(keyOf(storePrefix, n)) // its monitor came no further
		}
		s := &store{placer: p, target: t, pool: q, cell: unit(n), kept: true}
		t.users++
		used[s.cell] = 1
		stores[s.cell], q.stores[uint32(n)], p.left.stores[s] = s, s, r.Key
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stores, each(p.estate, pagePrefix, func(n int, r pageRecord) error {
		p.pages.Store(max(p.pages.Load(), uint32(n)))
		s := stores[r.Store]
		if s == nil || len(r.Rows) > 0 && r.Rows[0].at(rowEpoch) != s.word(cellEpoch) {
			return p.estate.book.Delete(keyOf(pagePrefix, n))
		}
		return s.read(uint32(n), &r)
	})
}

// read reads a page.
func (s *store) read(n uint32, r *pageRecord) error {
	if r.All {
		if err := s.dropPages(); err != nil { // their monitor came no further
			return err
		}
		s.past, s.written = nil, nil
	}
	s.pages = append(s.pages, n)
	for i := range r.Rows {
		var buckets program.Distribution
		if i < len(r.Buckets) {
			buckets = r.Buckets[i]
		}
		s.keep(&r.Rows[i], buckets)
		s.written = append(s.written, r.Rows[i].key())
	}
	return nil
}

// sweep removes objects without a record: their monitor was killed while it pinned or
// unpinned them.
func (e *estate) sweep(p *Placer) error {
	mine := map[string]bool{slabName: true, runningName: true, execName: true}
	for kind, q := range p.pools {
		if q == nil {
			continue
		}
		for _, name := range []string{indexName, deepName, chunksName, ringName} {
			mine[nameOf(name, kind)] = true
		}
		for i := range q.memory {
			mine[nameOf(chunkName, kind, i)] = true
		}
	}
	for _, list := range p.left.placed {
		for _, pl := range list {
			mine[nameOf(linkName, int(pl.bunch.serial))] = true
		}
	}
	var errs []error
	for _, name := range e.folder.Names() {
		if !mine[name] && !isOfEvents(name) {
			errs = append(errs, e.remove(name))
		}
	}
	return errors.Join(errs...)
}

// isOfEvents tells whether an object is one of the events of the kernel, which are looked
// after apart.
func isOfEvents(name string) bool {
	return strings.HasPrefix(name, tableName+"-") || strings.HasPrefix(name, hookName+"-")
}
