//go:build linux && amd64

package inline

import (
	"cmp"
	"slices"

	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// A timer that keeps a histogram counts each of its intervals in a bucket as well, by one
// instruction that no signal can interrupt: the buckets of a row have every interval once,
// at any instant.

// countInBucket counts the duration in RDX in the bucket that program.BucketOf tells. It
// spoils RAX.
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

// clearBuckets stores RAX, which is 0, in all of them. It spoils RDX.
func (m *compiler) clearBuckets() {
	c := m.c
	next := c.NewLabel()
	c.MovImm(x86.RDX, spreadSize-rowBuckets)
	c.Here(next)
	c.Store(x86.Sum(row, x86.RDX, rowBuckets-8), x86.RAX)
	c.DoImm(x86.Sub, x86.RDX, 8)
	c.JumpIf(x86.IfNot, next)
}

// counts are those of the buckets of a row that is in use.
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

// readSpread reads a row, and its buckets before that. A thread that clears its row
// meanwhile, after a reset, has begun it at another time.
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

// leaveOut takes intervals from their buckets that a torn row does not count yet: the last
// one, and where handlers of signals interrupt the code some before it, of which any will do.
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

// spreadIn turns ticks into nanoseconds. Limits and the greatest interval are rounded
// each by itself, and the latter upwards where the sum says so: it stays within its bucket.
func spreadIn(r *record, tick uint64) program.Histogram {
	h := program.Histogram{Row: r.Row, Buckets: bucketsIn(r.counts, tick)}
	h.Intervals = inNanoseconds(h.Intervals, tick)
	if n := len(h.Buckets); n > 0 {
		h.Buckets[n-1].Most = max(h.Buckets[n-1].Most, h.Max)
	}
	return h
}

// bucketsIn makes a distribution of counts by ticks.
func bucketsIn(counts []uint64, tick uint64) program.Distribution {
	d := program.DistributionOf(counts)
	for i := range d {
		d[i].Least, d[i].Most = nanoseconds(d[i].Least, tick), nanoseconds(d[i].Most, tick)
	}
	return d
}

// What a thread has counted that has ended is in as many records of the ledger as it
// takes, blocks that come before that of the row: without that they are nobody's.
const (
	blockOf   = 1 << 30 // is added to their entry
	blockSize = (recordSize - recordValues) / 8

	blockFirst = recordStarted // the number of the first bucket
)

// blockKey says which row a block belongs to: that of an entry, and of somebody's slot.
type blockKey struct {
	entry int
	claim
}

// recordsOf is how many records rows of some stores may take.
func recordsOf(stores []*store) (n int) {
	for _, s := range stores {
		n++
		if s.kind == program.StoreHistograms {
			n += program.Buckets / blockSize
		}
	}
	return n
}

// enterBlocks writes the buckets of a record into the ledger.
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

// joinBlocks gives records their buckets. Blocks without a record were being written when
// their monitor died; the row is still where it was.
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
