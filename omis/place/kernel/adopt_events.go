//go:build linux && amd64

package kernel

import (
	"errors"
	"runtime"

	"mirador/omis/host/proc"
	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
)

// Programs at events of the kernel outlive the monitor, too: their tables and the attachments to
// tracepoints are pinned. The next monitor assembles all programs again, from the journal's records of
// the listeners. Then it writes the slot of each new program over the slot of the old one, in the table
// that root programs read (records.go). This is one memory access, so each event runs one of the two
// programs and is counted once.

// openListeners makes the listeners of a former monitor.
func (a *adoption) openListeners() error {
	e := a.events
	byNumber := make(map[uint16]*watched)
	err := persist.Each(a.keeper.state, persist.Processes, func(n uint32, r persist.Watched) error {
		w := &watched{proc: r.Proc, record: e.records.reopen(uint16(n)), slots: make(map[point]slot)}
		byNumber[uint16(n)], e.watched[r.Proc] = w, w
		return nil
	})
	if err != nil {
		return err
	}
	err = persist.Each(a.keeper.state, persist.Listeners, func(n uint32, r persist.Listener) error {
		l := a.listener(code.Unit(n), &r, byNumber[r.Watched])
		if l == nil {
			return persist.Delete(a.keeper.state, persist.Listeners, n)
		}
		a.used[l.code.Active] = 1
		l.on.all = append(l.on.all, l)
		a.left.listeners = append(a.left.listeners, l)
		if code.IsScheduling(r.Kind) {
			return claim(l.program, atSwitches)
		}
		return nil
	})
	return errors.Join(err, e.reassemble())
}

// listener makes a listener from its record, nil if its process or a store no longer exists.
func (a *adoption) listener(active code.Unit, r *persist.Listener, on *watched) *listener {
	if on == nil || proc.Alive(on.proc) != nil {
		return nil
	}
	l := &listener{events: a.events, on: on, point: point{r.Kind, r.Number}, lasts: true}
	for _, s := range r.Steps {
		if a.stores[s.Store] == nil {
			return nil
		}
		op := program.Op{Do: s.Do, Value: s.Value, Load: s.Load, Clock: s.Clock, OneIn: s.OneIn, Whole: s.Whole, Store: a.stores[s.Store]}
		if s.Source != 0 {
			if a.stores[s.Source] == nil {
				return nil
			}
			op.Source = a.stores[s.Source]
		}
		l.program = append(l.program, op)
	}
	l.code = code.Listener{Kind: r.Kind, Steps: resolve(l.program), File: r.File, Active: active}
	for _, t := range r.Only {
		l.code.Only = append(l.code.Only, code.Thread(t))
	}
	return l
}

// reassemble assembles the programs of all adopted listeners again, and removes the old programs.
func (e *events) reassemble() error {
	defer runtime.KeepAlive(tracepoint.KernelTypes())
	former := make(map[*hook]map[slot]bool)
	for _, h := range e.allHooks() {
		if err := h.resume(); err != nil {
			return err
		}
		former[h] = make(map[slot]bool)
	}
	for _, w := range e.watched {
		e.addSlots(w.record, former)
	}
	for h, slots := range former {
		h.reserve(slots)
	}
	var errs []error
	for _, w := range e.watched {
		for _, l := range w.all {
			errs = append(errs, e.attach(l))
		}
		errs = append(errs, e.assemble(w, w.all))
	}
	awaitPrograms()
	for h, slots := range former {
		for s := range slots {
			h.drop(s)
		}
		if h.users == 0 && len(h.standing) > 0 {
			h.users++
			errs = append(errs, h.leave())
		}
	}
	for _, w := range e.watched {
		e.unwatch(w) // if it has no listeners
	}
	return errors.Join(errs...)
}

// addSlots adds the slots that the record of a process contains to the set of each hook. Programs at
// other slots never run: the former monitor was killed before it wrote the slot to a record, or after it
// removed the slot from the record.
func (e *events) addSlots(r record, into map[*hook]map[slot]bool) {
	r.slots(code.RecordStarted, code.OtherCalls+1, into[&e.enter])
	r.slots(code.RecordEnded, code.OtherCalls+1, into[&e.exit])
	for role := range e.roles {
		r.slots(code.RecordRoles+2*role, 1, into[&e.roles[role]])
	}
}

// resume opens the attachment of a former monitor.
func (h *hook) resume() error {
	folder, name := h.keeper.state.Folder, persist.Hook(h.Name)
	if !folder.Has(name) {
		return nil
	}
	l, err := folder.Link(name)
	if err == nil {
		h.standing = append(h.standing, l)
	}
	return err
}

// reserve marks all slots except the used ones as free, so that take does not return a used one.
func (h *hook) reserve(used map[slot]bool) {
	for s := range used {
		h.next = max(h.next, s+1)
	}
	for s := slot(1); s < h.next; s++ {
		if !used[s] {
			h.free = append(h.free, s)
		}
	}
}
