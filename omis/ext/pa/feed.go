package pa

import (
	"slices"

	"mirador/omis/service"
)

// feeds are the stores where placements keep rows of a counter or a timer. Whoever
// calls them holds the lock of that object.
type feeds struct {
	stores  []service.Store
	changes uint64 // rises with each but rows
}

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
	f.changes++
	for _, s := range f.stores {
		if err := s.Reset(); err != nil {
			return err
		}
	}
	return nil
}

func (f *feeds) join(s service.Store) {
	f.changes++
	f.stores = append(f.stores, s)
}

// leave takes a store off the list; its rows are to be kept.
func (f *feeds) leave(s service.Store) ([]service.Row, error) {
	f.changes++
	f.stores = slices.DeleteFunc(f.stores, func(other service.Store) bool { return other == s })
	return s.Rows()
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
