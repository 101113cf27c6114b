//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf/link"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// keeper makes stores and programs outlive the monitor: it pins kernel objects and writes records about
// them. If this fails, the programs run, but end with the monitor, and their verdicts say why.
// memory.mu guards it, except failure and pages.
type keeper struct {
	data    string // the data directory; "": nothing outlives the monitor
	journal persist.Journal
	client  *registrar.Client
	empty   bool           // no other monitor has left anything
	state   *persist.State // nil: nothing outlives the monitor
	failure atomic.Pointer[error]
	pages   atomic.Uint32 // the number of the last persist.Page
}

// open opens the folder of the data directory.
func (k *keeper) open() {
	folder, err := persist.Open(k.data)
	if err != nil {
		k.fails(err)
		return
	}
	k.state = &persist.State{Folder: folder, Journal: k.journal, Close: k.client.TakeOut}
}

// hasLeft reports whether another monitor has left anything. It takes nothing from the kernel.
func (k *keeper) hasLeft() bool {
	if k.data == "" || k.empty {
		return false
	}
	folder, err := persist.Of(k.data)
	if err != nil {
		return false
	}
	k.empty = len(folder.Names()) == 0 && len(k.journal.Keys(persist.AllRecords)) == 0
	return !k.empty
}

// fails records why not everything outlives the monitor.
func (k *keeper) fails(err error) {
	if err != nil {
		k.failure.Store(&err)
	}
}

// temporary is the error of a journal that could not write a record and will try again. Lasts reports
// whether the record is still not written.
type temporary interface{ Lasts() bool }

// explain adds to a verdict why the program ends with the monitor, if it should not.
func (k *keeper) explain(v program.Verdict) program.Verdict {
	err := k.failure.Load()
	if err == nil {
		return v
	}
	if e := temporary(nil); errors.As(*err, &e) && !e.Lasts() {
		k.failure.CompareAndSwap(err, nil)
	} else {
		v.Why += fmt.Sprintf("; it ends with the monitor: %v", *err)
	}
	return v
}

// put writes a record.
func (k *keeper) put(kind persist.Kind, n code.Unit, record any) {
	if k.state != nil {
		k.fails(persist.Put(k.state, kind, n, record))
	}
}

// delete deletes a record.
func (k *keeper) delete(kind persist.Kind, n code.Unit) {
	if k.state != nil {
		k.fails(persist.Delete(k.state, kind, n))
	}
}

// pinShared pins what all programs share.
func (k *keeper) pinShared(m *memory, exec link.Link) {
	s := k.state
	if s == nil {
		return
	}
	k.fails(s.Journal.Put(persist.HeadKey, persist.HeadOf(&m.layout)))
	err := errors.Join(
		m.slab.Words.Pin(s.Folder.Path(persist.Slab)),
		m.running.Pin(s.Folder.Path(persist.Running)),
		exec.Pin(s.Folder.Path(persist.Exec)),
	)
	if err != nil {
		k.fails(errors.Join(err, s.Wipe()))
		k.state = nil
	}
}

// keep makes a store outlive the monitor, under a key. The caller holds memory.mu.
func (s *store) keep(key string) {
	k := s.memory.keeper
	if k.state == nil {
		return
	}
	err := persist.Put(k.state, persist.Stores, s.cell, persist.Store{Key: key, Target: s.target.gone, Kind: s.pool.Form.Kind})
	k.fails(err)
	s.kept = err == nil
}

// unkeep deletes the records of a store.
func (s *store) unkeep() {
	if s.kept {
		k := s.memory.keeper
		k.fails(errors.Join(s.dropPages(), persist.Delete(k.state, persist.Stores, s.cell)))
	}
}

// writePage writes rows to the journal before their space in the pool is freed.
func (s *store) writePage(rows []code.Image, buckets []program.Distribution) error {
	if !s.kept || len(rows) == 0 {
		return nil
	}
	return s.putPage(persist.Page{Store: s.cell, Rows: rows, Buckets: buckets})
}

func (s *store) putPage(r persist.Page) error {
	k := s.memory.keeper
	n := k.pages.Add(1)
	if err := persist.Put(k.state, persist.Pages, n, r); err != nil {
		return err
	}
	s.pages = append(s.pages, n)
	return nil
}

// rewritePages replaces all pages of the store by one.
func (s *store) rewritePages(rows []dated) error {
	if !s.kept {
		return nil
	}
	page := persist.Page{Store: s.cell, All: true}
	for i := range rows {
		r := &rows[i]
		page.Rows = append(page.Rows, code.ImageOf(&r.Row, s.pool.Form.Kind, s.cell, s.word(code.CellEpoch), r.first))
		if s.pool.Form.Buckets > 0 {
			page.Buckets = append(page.Buckets, r.buckets)
		}
	}
	former := len(s.pages)
	if err := s.putPage(page); err != nil {
		return err
	}
	return s.dropFirst(former)
}

// dropPages deletes all pages of the store.
func (s *store) dropPages() error { return s.dropFirst(len(s.pages)) }

func (s *store) dropFirst(pages int) error {
	var errs []error
	for _, n := range s.pages[:pages] {
		errs = append(errs, persist.Delete(s.memory.keeper.state, persist.Pages, n))
	}
	s.pages = s.pages[pages:]
	return errors.Join(errs...)
}

// lasts reports whether all stores that a program writes or reads outlive the monitor.
func lasts(steps program.Program) bool {
	for _, op := range steps {
		if !storeIn(op).kept || op.Source != nil && !op.Source.(*store).kept {
			return false
		}
	}
	return true
}

// keepBunch makes a bunch outlive the monitor, if its stores do. The caller calls it before it lets the
// hits of the bunch count. after is the serial number of the bunch that this one replaces, or 0.
func (k *keeper) keepBunch(b *bunch, after uint32) {
	s := k.state
	if s == nil || !b.members[0].lasts {
		return
	}
	shape := b.shape.Shape
	r := persist.Bunch{
		Target: b.target.gone, Steps: shape.Steps, Clocks: shape.Clocks, Kinds: shape.Kinds, Sources: shape.Sources, Loads: shape.Loads,
		Threads: shape.Threads, When: shape.When, Path: b.path, After: after,
	}
	for _, pl := range b.members {
		r.Members = append(r.Members, persist.Member{Spot: pl.spot, File: pl.site.file, Offset: pl.site.offset, Code: pl.site.code})
	}
	err := persist.Put(s, persist.Bunches, b.serial, r)
	if err == nil {
		if err = b.link.Pin(s.Folder.Path(persist.Name(persist.Link, int(b.serial)))); err != nil {
			err = errors.Join(err, persist.Delete(s, persist.Bunches, b.serial))
		}
	}
	k.fails(err)
}

// unkeepBunch removes the record and the pin of a bunch.
func (k *keeper) unkeepBunch(b *bunch) error {
	if k.state == nil || !b.members[0].lasts {
		return nil
	}
	return k.forgetBunch(b.serial)
}

func (k *keeper) forgetBunch(serial uint32) error {
	return errors.Join(
		persist.Delete(k.state, persist.Bunches, serial),
		k.state.Folder.Remove(persist.Name(persist.Link, int(serial)), link.Link.Close), // bunch.link is another descriptor of the link, so this removes no uprobes
	)
}

// keepListener makes a listener outlive the monitor, if its stores do.
func (k *keeper) keepListener(l *listener) {
	if k.state == nil || !lasts(l.program) {
		return
	}
	r := persist.Listener{Watched: l.on.record.at, Kind: l.point.kind, Number: l.point.number, File: l.code.File}
	for _, s := range l.code.Steps {
		r.Steps = append(r.Steps, persist.ListenerStep{Do: s.Do, Value: s.Value, Load: s.Load, Clock: s.Clock, OneIn: s.OneIn, Whole: s.Whole, Store: s.Cell, Source: s.Source})
	}
	for _, t := range l.code.Only {
		r.Only = append(r.Only, persist.ListenerThread(t))
	}
	err := persist.Put(k.state, persist.Listeners, l.code.Active, r)
	k.fails(err)
	l.lasts = err == nil
}

// unkeepListener deletes the record of a listener.
func (k *keeper) unkeepListener(l *listener) {
	if l.lasts {
		k.delete(persist.Listeners, l.code.Active)
	}
}

// noteRegistrar records the registrar, so that the next monitor can wait for its end.
func (k *keeper) noteRegistrar(pid int) {
	if k.data == "" {
		return
	}
	start, err := proc.ThreadStart(pid, pid)
	if err == nil {
		err = k.journal.Put(persist.RegistrarKey, omis.ProcID{PID: pid, Start: start})
	}
	k.fails(err)
}

// dismissRegistrar ends the registrar.
func (k *keeper) dismissRegistrar() error {
	k.client.Close()
	if k.data == "" {
		return nil
	}
	return k.journal.Delete(persist.RegistrarKey)
}

// close removes all objects and records: the monitor ends normally, so nothing outlives it.
func (k *keeper) close() error {
	if k.state == nil {
		return nil
	}
	return k.state.Wipe()
}
