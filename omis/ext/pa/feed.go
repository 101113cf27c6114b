package pa

import (
	"slices"

	"mirador/omis/service"
)

// feeds are the stores where placements keep rows of a counter or a timer. Whoever
// calls them holds the lock of that object.
type feeds []service.Store

var _, _ service.Cell = (*counter)(nil), (*timer)(nil)

func (f feeds) rows() ([]service.Row, error) {
	if len(f) == 1 {
		return f[0].Rows()
	}
	var all []service.Row
	for _, s := range f {
		rows, err := s.Rows()
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (f feeds) reset() error {
	for _, s := range f {
		if err := s.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// leave takes a store off the list; its rows are to be kept.
func (f *feeds) leave(s service.Store) ([]service.Row, error) {
	*f = slices.DeleteFunc(*f, func(other service.Store) bool { return other == s })
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
