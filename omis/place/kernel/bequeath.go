//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/link"

	"mirador/omis/place/kernel/pins"
	"mirador/omis/program"
)

// What a placer with an estate does so that what it makes outlives it. Where that fails,
// programs run all the same, and their verdicts say why they end with the monitor.

// heir says where a former monitor's estate is, and this one's.
type heir struct {
	data  string // directory; "": nowhere
	book  Book
	empty bool // a former monitor has left nothing
}

// NewKeeper makes a placer whose programs can outlive it: what stands where is in the
// book, and its objects belong to the data directory. Both are the placer's alone.
func NewKeeper(command []string, data string, book Book) *Placer {
	p := New(command)
	p.heir = heir{data: data, book: book}
	return p
}

// openEstate finds where to leave things. The caller holds mu.
func (p *Placer) openEstate() {
	folder, err := pins.Open(p.heir.data)
	if err != nil {
		p.fails(err)
		return
	}
	p.estate = &estate{folder, p.heir.book, p.uprobes}
}

// fails notes why not everything outlives the monitor.
func (p *Placer) fails(err error) {
	if err != nil {
		p.mortal.Store(&err)
	}
}

// passing is an error of the book that may have passed: it writes later what it could not write.
type passing interface{ Lasts() bool }

// mortally adds to a verdict why the program ends with the monitor, where it should not.
func (p *Placer) mortally(v program.Verdict) program.Verdict {
	err := p.mortal.Load()
	if err == nil {
		return v
	}
	if e := passing(nil); errors.As(*err, &e) && !e.Lasts() {
		p.mortal.CompareAndSwap(err, nil)
	} else {
		v.Why += fmt.Sprintf("; it ends with the monitor: %v", *err)
	}
	return v
}

// bequeath pins what all programs share. The caller holds mu.
func (p *Placer) bequeath(exec link.Link) {
	e := p.estate
	p.fails(e.book.Put(headKey, headRecord{p.layout.shape()}))
	err := errors.Join(
		p.slab.words.Pin(e.folder.Path(slabName)),
		p.running.Pin(e.folder.Path(runningName)),
		exec.Pin(e.folder.Path(execName)),
	)
	if err != nil {
		p.fails(errors.Join(err, e.wipe()))
		p.estate = nil
	}
}

// bequeath pins what all rows of a kind share, the index last: a pool without one never
// was used. Chunks are pinned when they are made.
func (p *pool) bequeath(e *estate) error {
	kind := int(p.form.kind)
	if p.deep != nil {
		if err := p.deep.Pin(e.folder.Path(nameOf(deepName, kind))); err != nil {
			return err
		}
	}
	if err := p.chunks.Pin(e.folder.Path(nameOf(chunksName, kind))); err != nil {
		return err
	}
	if err := p.ring.words.Pin(e.folder.Path(nameOf(ringName, kind))); err != nil {
		return err
	}
	return p.index.Pin(e.folder.Path(nameOf(indexName, kind)))
}

// note and forget keep the record of a target. The caller holds Placer.mu.
func (t *target) note() {
	if e := t.placer.estate; e != nil {
		t.placer.fails(e.book.Put(keyOf(targetPrefix, t.gone), targetRecord{t.proc}))
	}
}

func (t *target) forget() {
	if e := t.placer.estate; e != nil {
		t.placer.fails(e.book.Delete(keyOf(targetPrefix, t.gone)))
	}
}

// note has a store outlive the monitor, under its key. The caller holds Placer.mu.
func (s *store) note(key string) {
	e := s.placer.estate
	if e == nil {
		return
	}
	err := e.book.Put(keyOf(storePrefix, s.cell), storeRecord{key, s.target.gone, s.pool.form.kind})
	s.placer.fails(err)
	s.kept = err == nil
}

// forget has it end with its user.
func (s *store) forget() {
	if s.kept {
		s.placer.fails(errors.Join(s.dropPages(), s.placer.estate.book.Delete(keyOf(storePrefix, s.cell))))
	}
}

// turn writes rows down that are about to be given back.
func (s *store) turn(rows []image, buckets []program.Distribution) error {
	if !s.kept || len(rows) == 0 {
		return nil
	}
	return s.putPage(pageRecord{Store: s.cell, Rows: rows, Buckets: buckets})
}

func (s *store) putPage(r pageRecord) error {
	n := s.placer.pages.Add(1)
	if err := s.placer.estate.book.Put(keyOf(pagePrefix, n), r); err != nil {
		return err
	}
	s.pages = append(s.pages, n)
	return nil
}

// rewrite writes one page in place of all that there are.
func (s *store) rewrite(rows []dated) error {
	if !s.kept {
		return nil
	}
	page := pageRecord{Store: s.cell, All: true}
	for i := range rows {
		page.Rows = append(page.Rows, s.imageOf(&rows[i]))
		if s.pool.form.buckets > 0 {
			page.Buckets = append(page.Buckets, rows[i].buckets)
		}
	}
	former := len(s.pages)
	if err := s.putPage(page); err != nil {
		return err
	}
	return s.dropFirst(former)
}

// dropPages forgets what was written down.
func (s *store) dropPages() error { return s.dropFirst(len(s.pages)) }

func (s *store) dropFirst(pages int) error {
	var errs []error
	for _, n := range s.pages[:pages] {
		errs = append(errs, s.placer.estate.book.Delete(keyOf(pagePrefix, n)))
	}
	s.pages = slices.Delete(s.pages, 0, pages)
	return errors.Join(errs...)
}

// lasts tells whether what a program changes outlives the monitor.
func lasts(steps program.Program) bool {
	for _, op := range steps {
		if !storeIn(op).kept {
			return false
		}
	}
	return true
}

// bequeath has a bunch outlive the monitor, before its hits count, if its stores do.
// after is the one that it takes over from.
func (b *bunch) bequeath(after uint32) {
	e := b.placer.estate
	if e == nil || !b.members[0].lasts {
		return
	}
	r := bunchRecord{Target: b.target.gone, Steps: b.shape.steps, CPU: b.shape.cpu, Kinds: b.shape.kinds, Loads: b.shape.loads, Threads: b.shape.threads, Path: b.path, After: after}
	for _, pl := range b.members {
		r.Members = append(r.Members, memberRecord{pl.spot, pl.site.file, pl.site.offset, pl.site.code})
	}
	err := e.book.Put(keyOf(bunchPrefix, b.serial), r)
	if err == nil {
		if err = b.link.Pin(e.folder.Path(nameOf(linkName, int(b.serial)))); err != nil {
			err = errors.Join(err, e.book.Delete(keyOf(bunchPrefix, b.serial)))
		}
	}
	b.placer.fails(err)
}

// close takes the uprobes out, of which those are gone then. Those of a process that has
// ended are taken out all, with the first that is removed.
func (b *bunch) close(gone *changeRecord) error {
	if b.link == nil {
		return nil
	}
	b.changing()
	defer func() {
		b.changed()
		b.link = nil
	}()
	if b.placer.estate == nil || !b.members[0].lasts {
		return b.takeOut(gone)
	}
	return b.withdraw(gone)
}

// withdraw takes the uprobes of a bunch out that would outlive the monitor.
func (b *bunch) withdraw(gone *changeRecord) error {
	e := b.placer.estate
	return errors.Join(
		e.book.Delete(keyOf(bunchPrefix, b.serial)),
		e.folder.Remove(nameOf(linkName, int(b.serial)), link.Link.Close), // b.link keeps it
		b.takeOut(gone),
	)
}
