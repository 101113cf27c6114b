//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/tracepoint"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Programs at events of the kernel outlive the monitor, too: the tables by which they are
// found, the programs, and the attachments to tracepoints are files. A record says what
// each listener does; the next monitor has all of them assembled anew, and a process's
// record lead there by one write for each event: so each is counted once.

// eventsKey tells that all tables have been pinned.
const (
	eventsKey      = "kernel/events"
	watchedPrefix  = "kernel/watched/"
	listenerPrefix = "kernel/listener/"
	tableName      = "table"
	hookName       = "hook"
)

// watchedRecord is a process; its key is the number of its record in the table.
type watchedRecord struct {
	Proc omis.ProcID `json:"proc"`
}

// listenerRecord is a listener; its key is the unit that says whether it is active.
type listenerRecord struct {
	Watched uint16           `json:"watched"`
	Kind    node.EventKind   `json:"kind"`
	Number  int              `json:"number"`
	Steps   []listenerStep   `json:"steps"`
	Only    []listenerThread `json:"only,omitempty"`
	Socket  bool             `json:"socket,omitempty"`
}

type listenerStep struct {
	Do    program.Operation `json:"do"`
	Value int64             `json:"value,omitempty"`
	Load  program.Load      `json:"load,omitzero"`
	Clock program.Clock     `json:"clock,omitempty"`
	OneIn int64             `json:"oneIn,omitempty"`
	Store unit              `json:"store"`
}

type listenerThread struct {
	TID   int    `json:"tid"`
	Ticks uint64 `json:"ticks"`
}

// lastingMaps makes maps that outlive the monitor, and opens those that did.
type lastingMaps struct {
	set    *tracepoint.Set
	placer *Placer
}

func (m lastingMaps) Map(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	folder, name := m.placer.estate.folder, tableName+"-"+spec.Name
	if folder.Has(name) {
		former, err := folder.Map(name)
		if err == nil {
			m.set.Add(former)
		}
		return former, err
	}
	fresh, err := m.set.Map(spec)
	if err == nil {
		m.placer.fails(fresh.Pin(folder.Path(name)))
	}
	return fresh, err
}

// openEvents opens what runs programs at events of the kernel. The caller holds mu.
func (p *Placer) openEvents(set *tracepoint.Set) error {
	p.events.placer = p
	if p.estate == nil {
		return p.events.open(set, &p.layout, p.slab, &p.pools)
	}
	var done bool
	if _, err := p.estate.book.Get(eventsKey, &done); err != nil || !done {
		if err := p.dropEvents(); err != nil {
			return err
		}
	}
	if err := p.events.open(lastingMaps{set, p}, &p.layout, p.slab, &p.pools); err != nil {
		return err
	}
	if p.mortal.Load() == nil {
		p.fails(p.estate.book.Put(eventsKey, true))
	}
	return nil
}

// dropEvents forgets what is not complete.
func (p *Placer) dropEvents() error {
	e := p.estate
	var errs []error
	for _, name := range e.folder.Names() {
		if isOfEvents(name) {
			errs = append(errs, e.remove(name))
		}
	}
	for _, prefix := range []string{watchedPrefix, listenerPrefix} {
		for _, key := range e.book.Keys(prefix) {
			errs = append(errs, e.book.Delete(key))
		}
	}
	return errors.Join(errs...)
}

// openListeners makes the listeners of a former monitor ours, by their stores.
func (p *Placer) openListeners(stores map[unit]*store, used map[unit]int) error {
	e := &p.events
	byNumber := make(map[uint16]*watched)
	err := each(p.estate, watchedPrefix, func(n int, r watchedRecord) error {
		w := &watched{proc: r.Proc, record: e.records.at(uint16(n)), places: make(map[point]slot)}
		for ; e.records.next < uint16(n); e.records.next++ {
			e.records.free = append(e.records.free, e.records.next)
		}
		e.records.next = uint16(n) + 1
		byNumber[uint16(n)], e.watched[r.Proc] = w, w
		return nil
	})
	if err != nil {
		return err
	}
	err = each(p.estate, listenerPrefix, func(n int, r listenerRecord) error {
		l := &listener{placer: p, on: byNumber[r.Watched], point: point{r.Kind, r.Number}, socket: r.Socket, active: unit(n), lasts: true}
		for _, s := range r.Steps {
			if stores[s.Store] != nil {
				l.steps = append(l.steps, program.Op{Do: s.Do, Value: s.Value, Load: s.Load, Clock: s.Clock, OneIn: s.OneIn, Store: stores[s.Store]})
			}
		}
		for _, t := range r.Only {
			l.only = append(l.only, thread{t.TID, t.Ticks})
		}
		if l.on == nil || len(l.steps) < len(r.Steps) || proc.Alive(l.on.proc) != nil {
			return p.estate.book.Delete(keyOf(listenerPrefix, n))
		}
		used[l.active] = 1
		l.on.all = append(l.on.all, l)
		p.left.listeners = append(p.left.listeners, l)
		if isScheduling(r.Kind) {
			return claim(l.steps, atSwitches)
		}
		return nil
	})
	return errors.Join(err, e.reassemble())
}

// reassemble has all listeners of a former monitor assembled anew, and takes away what those
// before them were.
func (e *events) reassemble() error {
	former := make(map[*hook][]slot)
	for _, h := range e.allHooks() {
		if err := h.resume(); err != nil {
			return err
		}
		former[h] = h.occupied()
	}
	var errs []error
	for _, w := range e.watched {
		for _, l := range w.all {
			errs = append(errs, e.attach(l))
		}
		errs = append(errs, e.place(w, w.all))
	}
	awaitPrograms()
	for h, list := range former {
		for _, s := range list {
			h.drop(s)
		}
		if h.users == 0 && len(h.standing) > 0 {
			h.users++
			errs = append(errs, h.leave())
		}
	}
	for _, w := range e.watched {
		e.unwatch(w) // if nothing is looked out for there
	}
	return errors.Join(errs...)
}

// allHooks are those of all tracepoints.
func (e *events) allHooks() []*hook {
	list := []*hook{&e.enter, &e.exit}
	for r := range e.roles {
		list = append(list, &e.roles[r])
	}
	return list
}

// resume takes the attachment of a former monitor over.
func (h *hook) resume() error {
	estate := h.placer.estate
	if !estate.folder.Has(h.pin()) {
		return nil
	}
	l, err := estate.folder.Link(h.pin())
	if err == nil {
		h.standing = append(h.standing, l)
	}
	return err
}

func (h *hook) pin() string { return hookName + "-" + h.name }

// occupied are the slots with programs of a former monitor, which are not given out
// before they are dropped.
func (h *hook) occupied() (list []slot) {
	var id uint32
	for s := slot(1); s < mostBodies; s++ {
		if h.bodies.Lookup(uint32(s), &id) == nil {
			for ; h.next < s; h.next++ {
				h.free = append(h.free, h.next)
			}
			h.next = s + 1
			list = append(list, s)
		}
	}
	return list
}

// note has a listener outlive the monitor if its stores do, forget has it end with it.
func (l *listener) note() {
	if l.placer.estate == nil || !lasts(l.steps) {
		return
	}
	r := listenerRecord{Watched: l.on.record.at, Kind: l.point.kind, Number: l.point.number, Socket: l.socket}
	for _, s := range l.steps {
		r.Steps = append(r.Steps, listenerStep{s.Do, s.Value, s.Load, s.Clock, s.OneIn, storeIn(s).cell})
	}
	for _, t := range l.only {
		r.Only = append(r.Only, listenerThread{t.tid, t.ticks})
	}
	err := l.placer.estate.book.Put(keyOf(listenerPrefix, l.active), r)
	l.placer.fails(err)
	l.lasts = err == nil
}

func (l *listener) forget() {
	if l.lasts {
		l.placer.fails(l.placer.estate.book.Delete(keyOf(listenerPrefix, l.active)))
	}
}

// note and forget keep the record of a process in the book.
func (w *watched) note(p *Placer) {
	if p.estate != nil {
		p.fails(p.estate.book.Put(keyOf(watchedPrefix, uint32(w.record.at)), watchedRecord{w.proc}))
	}
}

func (w *watched) forget(p *Placer) {
	if p.estate != nil {
		p.fails(p.estate.book.Delete(keyOf(watchedPrefix, uint32(w.record.at))))
	}
}

// standingListener finds what a former monitor has left that does the same; it is ours
// from now on. The caller holds mu.
func (p *Placer) standingListener(what *program.Placing, at point, only []thread, socket bool) *listener {
	if !lasts(what.Program) {
		return nil
	}
	i := slices.IndexFunc(p.left.listeners, func(l *listener) bool {
		return l.on.proc == what.Watch.Proc && l.point == at && l.socket == socket && slices.Equal(l.steps, what.Program) && slices.Equal(l.only, only)
	})
	if i < 0 {
		return nil
	}
	l := p.left.listeners[i]
	p.left.listeners = slices.Delete(p.left.listeners, i, i+1)
	return l
}

// orphan is what is to be said of a listener that nobody wants any more.
func (l *listener) orphan() program.Orphan {
	return program.Orphan{Proc: l.on.proc, What: fmt.Sprintf("a program at events of the kernel (%v)", l.point)}
}
