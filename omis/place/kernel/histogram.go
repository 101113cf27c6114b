//go:build linux && amd64

package kernel

import (
	"cmp"
	"slices"

	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

var _ program.HistogramStore = (*store)(nil)

// Histograms: see program.HistogramStore.
func (s *store) Histograms() ([]program.Histogram, error) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	s.pool.discover()
	all := slices.Clone(s.past)
	for _, n := range s.rows {
		d, ok, err := s.histogram(n)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
	list := make([]program.Histogram, len(all))
	for i := range all {
		list[i] = program.Histogram{Row: all[i].Row, Buckets: all[i].buckets}
	}
	return list, nil
}

// histogram reads a row with its buckets. It reads the buckets first, so that the row includes all
// intervals that the buckets count. The caller holds the pool's lock, which excludes a reset.
func (s *store) histogram(n uint32) (d dated, ok bool, err error) {
	copied, err := s.copy(n)
	if err != nil || copied.At(code.RowEpoch) != s.word(code.CellEpoch) {
		return d, false, err
	}
	d.buckets = s.pool.row(n).Distribution()
	if copied, err = s.copy(n); err != nil {
		return d, false, err
	}
	d.Row, d.first = copied.Decode(s.pool.Form.Kind), copied.At(code.RowFirst)
	d.Alive = s.target.wasAlive(copied.Key().Thread())
	return d, true, nil
}
