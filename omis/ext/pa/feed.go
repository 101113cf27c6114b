package pa

import (
	"slices"
	"sync/atomic"

	"mirador/omis/service"
)

// feeds are the stores where placements keep rows of a counter or a timer. Whoever
// calls them holds the lock of that object, but for shown.
type feeds struct {
	stores []service.Store
	shown  atomic.Pointer[shown]
}

// shown are stores for those who read many objects at once, without their locks. An
// object shows them as long as its rows are in there and nowhere else, and others after
// each change.
type shown struct {
	first service.Store // most have no more
	more  []service.Store
}

// show has others see the stores, if the object has no rows of its own.
func (f *feeds) show(own int) {
	if own > 0 || len(f.stores) == 0 {
		f.hide()
		return
	}
	f.shown.Store(&shown{f.stores[0], slices.Clone(f.stores[1:])})
}

// hide goes before each change: who looks meanwhile has to wait for the lock.
func (f *feeds) hide() { f.shown.Store(nil) }

var (
	_ service.Cell    = (*counter)(nil)
	_ service.Clocked = (*timer)(nil)
	_ service.Sampled = (*timer)(nil)
)

func (f *feeds) rows() ([]service.Row, error) {
	if len(f.stores) == 1 {
		return f.stores[0].Rows()
	}
	var all []service.Row
	for _, s := range f.stores {
		rows, err := s.Rows()
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (f *feeds) reset() error {
	f.hide()
	defer f.show(0)
	for _, s := range f.stores {
		if err := s.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// join adds a store; the object has some rows of its own.
func (f *feeds) join(s service.Store, own int) {
	f.stores = append(f.stores, s)
	f.show(own)
}

// leave takes a store off the list; its rows are to be kept, and the stores to be shown
// when they are.
func (f *feeds) leave(s service.Store) {
	f.hide()
	f.stores = slices.DeleteFunc(f.stores, func(other service.Store) bool { return other == s })
}

// areApart tells that no two rows belong to the same thread, as those of one store do. It
// is not sure of many.
func areApart(rows []service.Row) bool {
	const few = 8
	if len(rows) > few {
		return false
	}
	for i := range rows {
		for k := range i {
			if rows[i].Thread == rows[k].Thread && rows[i].Proc == rows[k].Proc {
				return false
			}
		}
	}
	return true
}
