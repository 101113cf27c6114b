package placing

import (
	"fmt"
	"maps"

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
	bias := f.biasByMark()
	for i, r := range records {
		r.Time += skew
		if b := bias[r.Mark]; b != 0 {
			r.Value = max(r.Value-b, 0)
		}
		who := program.Row{TID: r.TID, Started: r.Started, Alive: r.Alive}
		list[i] = service.Record{Proc: f.Proc.Token, Thread: last.threadOf(f.Proc, &who), Record: r}
	}
	return list, lost, nil
}

// valuesOf records that the values of records with a mark are intervals of another feed.
func (f *feed) valuesOf(mark int32, closer *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closers == nil {
		f.closers = make(map[int32]*feed)
	}
	f.closers[mark] = closer
}

// biasByMark returns what must be subtracted from the values of records, by their marks.
func (f *feed) biasByMark() map[int32]int64 {
	f.mu.Lock()
	closers := maps.Clone(f.closers)
	f.mu.Unlock()
	var bias map[int32]int64
	for mark, closer := range closers {
		if bias == nil {
			bias = make(map[int32]int64)
		}
		bias[mark] = closer.bias()
	}
	return bias
}
