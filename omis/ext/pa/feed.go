package pa

import (
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis/service"
)

// feeds holds the stores in which placements keep rows of a counter or a timer.
//
// There are two locks. The lock of feeds is held while stores are read, reset, joined or
// left. This may wait for a placement, and the placement for the goroutine that owns a
// process. The object's own lock guards the rows of the object itself. The goroutine that
// owns a process executes actions on the object, for which it takes only this lock. So the
// object's own lock is taken after the lock of feeds, and is never held while stores are
// read.
type feeds struct {
	sync.Mutex
	stores []service.Store
	shown  atomic.Pointer[shown] // stored under the object's own lock

	// live has the stores for a reader that must not wait: see source.
	live     atomic.Pointer[[]service.Store] // stored under the object's own lock
	isSource atomic.Bool
}

// shown lists the stores of an object for readers of many objects, which do not take its
// lock. An object publishes shown while all its rows are in these stores, and a new one
// after each change.
type shown struct {
	first service.Store // most objects have only this one
	more  []service.Store
}

// show publishes the stores, for readers of many objects only if the object has no rows of
// its own.
func (f *feeds) show(own int) {
	stores := f.stores
	f.live.Store(&stores)
	if own > 0 || len(f.stores) == 0 {
		f.hide()
		return
	}
	f.shown.Store(&shown{f.stores[0], slices.Clone(f.stores[1:])})
}

// hide precedes each change; a reader must then take the object's lock.
func (f *feeds) hide() { f.shown.Store(nil) }

var (
	_ service.Cell    = (*counter)(nil)
	_ service.Clocked = (*timer)(nil)
	_ service.Sampled = (*timer)(nil)

	_, _ service.Sourced = (*counter)(nil), (*timer)(nil)
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

// reset resets the stores. The caller calls show afterwards.
func (f *feeds) reset() error {
	f.hide()
	for _, s := range f.stores {
		if err := s.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// leave removes a store from the list. The caller takes over its rows, and then calls
// show.
func (f *feeds) leave(s service.Store) {
	f.hide()
	f.stores = slices.DeleteFunc(slices.Clone(f.stores), func(other service.Store) bool { return other == s })
}

// areApart reports whether the rows are known to belong to different threads, as the rows
// of one store do. It answers false for many rows without comparing them.
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
