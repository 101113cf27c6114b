//go:build linux && amd64

package inline

import (
	"cmp"
	"slices"

	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// A timer with a histogram also adds 1 to the bucket of each interval, by one instruction that no signal
// can interrupt. So at any moment the buckets of a row have every interval exactly once.

// countInBucket adds 1 to the bucket of the duration in RDX: see program.BucketOf. It changes RAX.
func (m *compiler) countInBucket() {
	c := m.c
	c.Mov(spare, row)
	c.Mov(x86.RAX, x86.RDX)
	c.DoImm(x86.Or, x86.RAX, 8)
	c.HighestBit(x86.RCX, x86.RAX)
	c.DoImm(x86.Sub, x86.RCX, 3)
	c.Mov(x86.RAX, x86.RDX)
	c.ShrByCL(x86.RAX)
	c.Shl(x86.RCX, 3)
	c.Do(x86.Add, x86.RAX, x86.RCX)
	c.Shl(x86.RAX, 3)
	c.Inc(x86.Sum(spare, x86.RAX, rowBuckets))
	c.Mov(row, spare)
}

// clearBuckets stores RAX, which is 0, in all buckets. It changes RDX.
func (m *compiler) clearBuckets() {
	c := m.c
	next := c.NewLabel()
	c.MovImm(x86.RDX, spreadSize-rowBuckets)
	c.Here(next)
	c.Store(x86.Sum(row, x86.RDX, rowBuckets-8), x86.RAX)
	c.DoImm(x86.Sub, x86.RDX, 8)
	c.JumpIf(x86.IfNot, next)
}

// counts returns the buckets of a row in use.
func (m *memory) counts(slot int, c cell) []uint64 {
	at := m.rowAt(slot, c) + rowBuckets
	list := make([]uint64, program.Buckets)
	for n := range list {
		list[n] = min(m.word(at+8*n).Load(), mostCounted)
	}
	return list
}

var _ program.HistogramStore = (*store)(nil)

// Histograms: see program.HistogramStore.
func (s *store) Histograms() (_ []program.Histogram, err error) {
	t := s.target
	defer t.release(t.hold(), &err)
	if s.closed || t.broken != nil {
		return nil, t.broken
	}
	t.meet()
	all := slices.Clone(s.past)
	for _, o := range t.known {
		if r, ok := s.readSpread(o); ok {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(a.first, b.first) })
	tick := t.tick()
	list := make([]program.Histogram, len(all))
	for i := range all {
		list[i] = spreadIn(&all[i], tick)
	}
	return list, nil
}

// readSpread reads a row after its buckets. If the thread has cleared its row meanwhile, because of a
// reset, the time when the row was begun is different.
func (s *store) readSpread(o *owner) (r record, ok bool) {
	m := s.target.memory
	for range tries {
		before := m.timer(o.slot, s.cell)
		if before.any {
			r.counts = m.counts(o.slot, s.cell)
		}
		now := s.read([]*owner{o})[0]
		if !now.any || before.any && before.first == now.first {
			if now.torn {
				leaveOut(r.counts, &now)
			}
			r.dated = told(o, now)
			return r, now.any
		}
	}
	return r, false
}

// leaveOut removes from the buckets the intervals that a torn row does not count yet: the last one, and, if signal
// handlers have interrupted the code, some earlier ones. It is unknown which earlier ones these are, so leaveOut
// chooses any.
func leaveOut(counts []uint64, torn *reading) {
	var all uint64
	for _, n := range counts {
		all += n
	}
	surplus := all - min(all, uint64(torn.Count))
	take := func(bucket int) {
		n := min(surplus, counts[bucket])
		counts[bucket] -= n
		surplus -= n
	}
	take(program.BucketOf(torn.Last))
	for bucket := 0; surplus > 0; bucket++ {
		take(bucket)
	}
}

// spreadIn converts ticks to nanoseconds. Bounds of buckets and the longest interval are rounded
// separately, and the longest is rounded up if the sum requires it. It must stay within its bucket.
func spreadIn(r *record, tick uint64) program.Histogram {
	h := program.Histogram{Row: r.Row, Buckets: bucketsIn(r.counts, tick)}
	h.Intervals = inNanoseconds(h.Intervals, tick)
	if n := len(h.Buckets); n > 0 {
		h.Buckets[n-1].Most = max(h.Buckets[n-1].Most, h.Max)
	}
	return h
}

// bucketsIn makes a distribution of counts in ticks.
func bucketsIn(counts []uint64, tick uint64) program.Distribution {
	d := program.DistributionOf(counts)
	for i := range d {
		d[i].Least, d[i].Most = nanoseconds(d[i].Least, tick), nanoseconds(d[i].Most, tick)
	}
	return d
}

// The buckets of an ended thread are in several records of the ledger, called blocks. They are written
// before the record of the row; blocks without such a record do not count.
const (
	blockOf   = 1 << 30 // is added to their entry
	blockSize = (recordSize - recordValues) / 8

	blockFirst = recordStarted // number of the first bucket
)

// blockKey identifies the row that a block belongs to: by its entry, and by the thread that had the slot.
type blockKey struct {
	entry int
	claim
}

// recordsOf returns the most records that the rows of one thread in these stores can take.
func recordsOf(stores []*store) (n int) {
	for _, s := range stores {
		n++
		if s.kind == program.StoreHistograms {
			n += program.Buckets / blockSize
		}
	}
	return n
}

// enterBlocks writes the buckets of a record to the ledger.
func (m *memory) enterBlocks(entry int, r *record) error {
	for first := 0; first < len(r.counts); first += blockSize {
		counts := r.counts[first:min(first+blockSize, len(r.counts))]
		if !slices.ContainsFunc(counts, func(n uint64) bool { return n != 0 }) {
			continue
		}
		number, err := m.records.take()
		if err != nil {
			return err
		}
		r.blocks = append(r.blocks, number)
		at := m.ledgerAt() + number*recordSize
		m.word32(at + recordTID).Store(uint32(r.TID))
		m.word(at + recordTaken).Store(r.taken)
		m.word(at + blockFirst).Store(uint64(first))
		for i, n := range counts {
			m.word(at + recordValues + 8*i).Store(n)
		}
		m.finish(number, uint32(blockOf+entry+1))
	}
	return nil
}

func (m *memory) strikeBlocks(blocks []int) {
	for _, number := range blocks {
		m.word32(m.ledgerAt() + number*recordSize + recordEntry).Store(0)
		m.records.give(number)
	}
}

// joinBlocks gives records their buckets. Blocks without a record were being written when their monitor
// died; the row is still in its slot.
func (m *memory) joinBlocks(all map[int][]record, blocks map[blockKey][]int) error {
	for entry, records := range all {
		for i := range records {
			r := &records[i]
			key := blockKey{entry, r.claim()}
			if r.blocks = blocks[key]; len(r.blocks) > 0 {
				if err := m.spend(costOfBuckets); err != nil {
					return err
				}
				m.readBlocks(r)
			}
			delete(blocks, key)
		}
	}
	for _, list := range blocks {
		m.strikeBlocks(list)
	}
	return nil
}

func (m *memory) readBlocks(r *record) {
	r.counts = make([]uint64, program.Buckets)
	for _, number := range r.blocks {
		at := m.ledgerAt() + number*recordSize
		first := min(m.word(at+blockFirst).Load(), program.Buckets)
		for i := range r.counts[first:min(first+blockSize, program.Buckets)] {
			r.counts[int(first)+i] = min(m.word(at+recordValues+8*i).Load(), mostCounted)
		}
	}
}
