//go:build linux && amd64

package inline

import (
	"cmp"
	"errors"
	"slices"

	"mirador/omis/program"
)

// Of threads that have ended only the last ones keep records of their own; what those
// before them have measured is added up in one, the first record of their store. A monitor
// may be killed in the middle of that: a sum says by its serial number which records are
// in it, and with the word that completes it these count no more.

// foldMany adds records of those stores up that have too many. The caller holds mu.
func (t *target) foldMany(stores []*store) error {
	var full []*store
	for _, s := range stores {
		if program.TooManyEnded(len(s.past), len(stores)) {
			full = append(full, s)
		}
	}
	return t.fold(full, program.RowsOfEnded(len(stores)))
}

// fold adds records up until so many are left of each store. The caller holds mu.
func (t *target) fold(stores []*store, left int) error {
	if len(stores) == 0 {
		return nil
	}
	occupied := make(map[claim]bool)
	for _, o := range t.known {
		occupied[o.claim()] = true
	}
	var errs []error
	for _, s := range stores {
		errs = append(errs, s.fold(left, occupied))
	}
	return errors.Join(errs...)
}

// fold: see target.fold. A record whose row stands in a slot yet has to be known, or that
// would be told as well.
func (s *store) fold(left int, occupied map[claim]bool) error {
	n := max(len(s.past)-left+1, 0)
	if i := slices.IndexFunc(s.past[:n], func(r record) bool { return r.TID != 0 && occupied[r.claim()] }); i >= 0 {
		n = i
	}
	if n < 2 {
		return nil
	}
	sum := sumOf(s.past[:n])
	if s.key != "" {
		m := s.target.memory
		if err := m.enterRecord(s.cell.entry, &sum); err != nil {
			return err
		}
		for i := range s.past[:n] {
			m.strike(&s.past[i])
		}
	}
	s.past = slices.Concat([]record{sum}, s.past[n:])
	return nil
}

// sumOf is what records tell together. It comes before all others.
func sumOf(records []record) record {
	last := records[len(records)-1].serial
	sum := record{taken: last, serial: last}
	for i := range records {
		r := &records[i]
		sum.Row = sum.Row.Join(r.Row)
		if r.counts == nil {
			continue
		}
		if sum.counts == nil {
			sum.counts = make([]uint64, program.Buckets)
		}
		for n, count := range r.counts {
			sum.counts[n] += count
		}
	}
	return sum
}

// unfolded are the records of an entry that count, in the order in which threads ended.
// Those that a sum has, which a killed monitor did not come to strike, go.
func (m *memory) unfolded(records []record) []record {
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(b.TID, a.TID)) // the last of a sum, then the sum
	})
	first := 0
	for i := range records {
		if records[i].TID == 0 {
			first = i
		}
	}
	for i := range records[:first] {
		m.strike(&records[i])
	}
	if n := len(records); n > 0 {
		m.serial = max(m.serial, records[n-1].serial)
	}
	return records[first:]
}

// nobodys adds rows up that name no thread: that of ended ones, which is the first, and
// that of the crowd, which is the last.
func nobodys(all []dated) []dated {
	last := len(all) - 1
	if all[0].TID != 0 || all[last].TID != 0 {
		return all
	}
	all[last].Row = all[0].Row.Join(all[last].Row)
	return all[1:]
}

// recordsLeft is of how many threads the ledger has room for the rows, beside what it takes
// to add others up.
func (t *target) recordsLeft(stores []*store) int {
	return max(t.memory.records.room()-mostRecords, 0) / max(recordsOf(stores), 1)
}

// mostRecords is how many a row takes at most.
const mostRecords = 1 + program.Buckets/blockSize
