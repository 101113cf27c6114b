//go:build linux && amd64

package inline

import (
	"mirador/omis/program"
)

// record is a record of the ledger: the row of a thread that has ended, in ticks, with the slot that it was
// in; or the sum of several, without a thread.
type record struct {
	dated
	number int
	taken  uint64
	serial uint64   // of the thread; in a sum, of the last thread that was added
	counts []uint64 // buckets of a histogram
	blocks []int    // the records that contain counts
}

// claim identifies the use of the slot that the row was in.
func (r *record) claim() claim { return claim{r.TID, r.taken} }

// words returns the values of a row.
func words(r program.Row) [12]uint64 {
	return [...]uint64{
		uint64(r.Value), uint64(r.Count), uint64(r.Unfinished), uint64(r.Open),
		r.Last, r.Min, r.Max, r.Sum.Lo, r.Sum.Hi, r.Squares.Lo, r.Squares.Hi,
		uint64(r.Skipped),
	}
}

// rowOf is the reverse of words.
func rowOf(w [12]uint64) program.Row {
	return program.Row{Value: int64(w[0]), Intervals: program.Intervals{
		Count: int64(w[1]), Unfinished: int64(w[2]), Open: int64(w[3]),
		Last: w[4], Min: w[5], Max: w[6],
		Sum: program.Uint128{Lo: w[7], Hi: w[8]}, Squares: program.Uint128{Lo: w[9], Hi: w[10]},
		Skipped: int64(w[11]),
	}}
}

// enterRecord writes a row of a store to the ledger, and marks it as complete.
func (m *memory) enterRecord(entry int, r *record) (err error) {
	if err = m.enterBlocks(entry, r); err == nil {
		r.number, err = m.records.take()
	}
	if err != nil {
		m.strikeBlocks(r.blocks)
		return err
	}
	at := m.ledgerAt() + r.number*recordSize
	m.word32(at + recordTID).Store(uint32(r.TID))
	m.word(at + recordTaken).Store(r.taken)
	m.word(at + recordStarted).Store(r.Started)
	m.word(at + recordFirst).Store(r.first)
	m.word(at + recordSerial).Store(r.serial)
	for i, v := range words(r.Row) {
		m.word(at + recordValues + 8*i).Store(v)
	}
	m.finish(r.number, uint32(entry+1))
	return nil
}

// finish marks a record as complete.
func (m *memory) finish(number int, entry uint32) {
	m.word32(m.ledgerAt() + number*recordSize + recordEntry).Store(entry)
	if used := m.word(headerLedger); used.Load() <= uint64(number) {
		used.Store(uint64(number + 1))
	}
}

// strike deletes a record.
func (m *memory) strike(r *record) {
	m.word32(m.ledgerAt() + r.number*recordSize + recordEntry).Store(0)
	m.records.give(r.number)
	m.strikeBlocks(r.blocks)
}

// audit reads the ledger that a former monitor has left. It returns the records by entry of the directory.
func (m *memory) audit() (all map[int][]record, err error) {
	all = make(map[int][]record)
	blocks := make(map[blockKey][]int)
	next := 0 // the first record that was not read yet
	begin, end := m.ledgerAt(), m.ledgerAt()+m.records.next*recordSize
	m.dataIn(begin, end, func(page int) {
		next = max(next, (page-begin)/recordSize)
		for ; next < m.records.next && begin+next*recordSize < page+pageSize; next++ {
			if err == nil {
				err = m.read(next, all, blocks)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	m.records.next = next
	if err := m.joinBlocks(all, blocks); err != nil {
		return nil, err
	}
	for entry, records := range all {
		all[entry] = m.unfolded(records)
	}
	return all, nil
}

// read reads a record of the ledger.
func (m *memory) read(number int, all map[int][]record, blocks map[blockKey][]int) error {
	at := m.ledgerAt() + number*recordSize
	entry := int(m.word32(at+recordEntry).Load()) - 1
	if entry < 0 {
		m.records.give(number)
		return nil
	}
	if entry >= blockOf {
		key := blockKey{entry - blockOf, claim{int(m.word32(at + recordTID).Load()), m.word(at + recordTaken).Load()}}
		blocks[key] = append(blocks[key], number)
		return m.spend(costOfBlock)
	}
	if entry >= mostCells {
		return damaged("a record belongs to entry %d of the directory", entry)
	}
	var w [12]uint64
	for i := range w {
		w[i] = m.word(at + recordValues + 8*i).Load()
	}
	r := record{
		dated: dated{rowOf(w), m.word(at + recordFirst).Load()}, number: number,
		taken: m.word(at + recordTaken).Load(), serial: m.word(at + recordSerial).Load(),
	}
	r.TID, r.Started = int(m.word32(at+recordTID).Load()), m.word(at+recordStarted).Load()
	r.Intervals = possible(r.Intervals)
	all[entry] = append(all[entry], r)
	return m.spend(costOfRecord)
}
