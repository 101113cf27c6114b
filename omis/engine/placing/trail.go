package placing

import (
	"fmt"

	"mirador/omis/program"
	"mirador/omis/service"
)

var _ service.Trail = (*feed)(nil)

// Take: see service.Trail.
func (f *feed) Take() ([]service.Record, uint64, error) {
	trail, ok := f.store.(program.Trail)
	if !ok {
		return nil, 0, fmt.Errorf("the placement %s keeps no records", f.placer.Name())
	}
	records, lost, err := trail.Take()
	if err != nil {
		return nil, 0, err
	}
	list, last, skew := make([]service.Record, len(records)), named{}, f.Proc.machine().Skew
	for i, r := range records {
		r.Time += skew
		who := program.Row{TID: r.TID, Started: r.Started, Alive: r.Alive}
		list[i] = service.Record{Proc: f.Proc.Token, Thread: last.threadOf(f.Proc, &who), Record: r}
	}
	return list, lost, nil
}
