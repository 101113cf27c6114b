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
