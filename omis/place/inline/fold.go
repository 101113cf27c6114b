//go:build linux && amd64

package inline

import (
	"cmp"
	"errors"
	"slices"

	"mirador/omis/program"
)

// Only the threads that ended last keep records of their own. The records of earlier threads are added up
// in one, the first record of the store. The monitor may be killed meanwhile. So a sum has the serial
// number of the last record in it. As soon as the word is written that completes the sum, records up to
// this number do not count.

// foldMany adds up records of the stores that have too many. The caller holds mu.
func (t *target) foldMany(stores []*store) error {
	var full []*store
	for _, s := range stores {
		if program.TooManyEnded(len(s.past), len(stores)) {
			full = append(full, s)
		}
	}
	return t.fold(full, program.RowsOfEnded(len(stores)))
}

// fold adds up records until each store has no more than left of them. The caller holds mu.
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

// fold: see target.fold. The thread of a record may still have a slot; such a record is kept, because
// otherwise its row would count twice.
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

// sumOf returns the sum of records. It sorts before all others.
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

// unfolded returns the records of an entry that count, in the order in which their threads ended. It
// deletes the others: a killed monitor has added them up, and has not deleted them.
func (m *memory) unfolded(records []record) []record {
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(b.TID, a.TID)) // a sum comes after the last record in it
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

// nobodys adds up the rows that name no thread. The first row is the sum of ended threads, and the last row is
// the crowd's.
func nobodys(all []dated) []dated {
	last := len(all) - 1
	if all[0].TID != 0 || all[last].TID != 0 {
		return all
	}
	all[last].Row = all[0].Row.Join(all[last].Row)
	return all[1:]
}

// recordsLeft returns for how many threads the ledger has room, besides the records that fold needs.
func (t *target) recordsLeft(stores []*store) int {
	return max(t.memory.records.room()-mostRecords, 0) / max(recordsOf(stores), 1)
}

// mostRecords is the most records that one row takes.
const mostRecords = 1 + program.Buckets/blockSize
