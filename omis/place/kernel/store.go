//go:build linux && amd64

package kernel

import (
	"cmp"
	"slices"
	"time"

	"mirador/omis"
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// store is a program.Store in the kernel. The pool's lock guards it.
type store struct {
	memory *memory
	pool   *pool
	target *target
	cell   code.Unit // the number of the store; its words are the epoch and the number of lost hits

	kept   bool       // the store outlives the monitor
	pages  []uint32   // journal records with its past rows
	onPage []code.Key // rows in adopted pages: if they are still in the pool, pool.recount frees their space
	rows   []uint32   // in the pool
	room   [2]uint32  // memory for the first elements of rows
	past   []dated    // rows of this epoch whose threads have ended and whose space was freed
	closed bool

	writers writers // memory.mu guards it
	notes   *notes  // of a trace; nil for other stores
}

// writers says which programs write the rows of a store. A thread can lose its processor while it runs
// the program at a uprobe; then the program for this scheduling event runs on the same thread. The two
// must not write the same row.
type writers uint8

const (
	atAddresses writers = 1 << iota
	atSwitches
)

// claim records which kind of event writes the stores of a program. The caller holds memory.mu.
func claim(steps program.Program, w writers) error {
	for _, s := range steps {
		st := storeIn(s)
		if st.writers|w == atAddresses|atSwitches {
			return &program.Refusal{Why: "what happens at an address and what happens at the loss of a processor are not counted or timed together"}
		}
	}
	for _, s := range steps {
		storeIn(s).writers |= w
	}
	return nil
}

// resolve returns the steps with their stores. The caller holds memory.mu.
func resolve(steps program.Program) []code.Step {
	list := make([]code.Step, len(steps))
	for i, op := range steps {
		s := storeIn(op)
		list[i] = code.Step{Op: op, Cell: s.cell, Kind: s.pool.Form.Kind}
		if op.Source != nil {
			from := op.Source.(*store)
			list[i].Source, list[i].SourceKind = from.cell, from.pool.Form.Kind
		}
	}
	return list
}

// dated is a row with the time when it was first written, by which rows are sorted.
type dated struct {
	program.Row
	first   uint64
	buckets program.Distribution // of a past row
}

var _ program.RowAppender = (*store)(nil)

// open begins the store with rows of a kind. The caller holds memory.mu.
func (s *store) open(kind program.StoreKind) (err error) {
	m := s.memory
	if s.pool, err = m.poolOf(kind); err != nil {
		return err
	}
	if s.cell, err = m.slab.take(1); err != nil {
		return err
	}
	m.slab.Word(s.cell, code.CellEpoch).Store(1) // new rows have epoch 0, so their first writer clears them
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.stores[uint32(s.cell)] = s
	return nil
}

func (s *store) word(i int) uint64 { return s.memory.slab.Word(s.cell, i).Load() }

// Rows: see program.Store.
func (s *store) Rows() ([]program.Row, error) { return s.AppendRows(nil) }

// AppendRows: see program.RowAppender.
func (s *store) AppendRows(list []program.Row) ([]program.Row, error) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.discover()
	return s.append(list, &lively{})
}

// append does what remains of AppendRows after the caller has called pool.discover. The caller holds the
// pool's lock.
func (s *store) append(list []program.Row, last *lively) ([]program.Row, error) {
	if s.closed {
		return list, nil
	}
	epoch := s.word(code.CellEpoch)
	if len(s.rows) == 1 && len(s.past) == 0 {
		return s.appendOnly(list, epoch, last)
	}
	var room [few]dated
	all := append(room[:0], s.past...)
	for _, n := range s.rows {
		copied, err := s.copy(n)
		if err != nil {
			return list, err
		}
		if copied.At(code.RowEpoch) == epoch {
			all = append(all, dated{Row: copied.Decode(s.pool.Form.Kind), first: copied.At(code.RowFirst)})
			all[len(all)-1].Alive = last.wasAlive(s.target, copied.Key())
		}
	}
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
	}
	for i := range all {
		list = append(list, all[i].Row)
	}
	return list, nil
}

// appendOnly is append for a store with one row.
func (s *store) appendOnly(list []program.Row, epoch uint64, last *lively) ([]program.Row, error) {
	copied, err := s.copy(s.rows[0])
	if err != nil || copied.At(code.RowEpoch) != epoch {
		return list, err
	}
	list = append(list, copied.Decode(s.pool.Form.Kind))
	list[len(list)-1].Alive = last.wasAlive(s.target, copied.Key())
	return list, nil
}

// few is the number of rows that append sorts without allocating memory. Most stores have no more.
const few = 4

// A hit takes longer than copying a row, so a copy usually succeeds at once. But the hypervisor may
// suspend the processor that is writing the row; then the reader waits up to patience.
const (
	tries    = 1000
	pause    = 50 * time.Microsecond
	patience = time.Second
)

// copy returns a consistent copy of a row. The caller holds the pool's lock.
func (s *store) copy(n uint32) (copied code.Image, err error) {
	r := s.pool.row(n)
	var deadline time.Time
	for try := 0; !r.Copy(&copied); try++ {
		switch {
		case try < tries:
			continue
		case try == tries:
			deadline = time.Now().Add(patience)
		case time.Now().After(deadline):
			return copied, omis.Errorf(omis.OSError, "cannot read what thread %d measures in the kernel: it never pauses", r.Key().TID)
		}
		time.Sleep(pause)
	}
	return copied, nil
}

// Reset begins a new epoch. Each thread clears its own row at its next hit.
func (s *store) Reset() error {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil
	}
	s.memory.slab.Word(s.cell, code.CellEpoch).Add(1)
	s.memory.slab.Word(s.cell, code.CellLost).Store(0)
	s.past = nil
	return s.dropPages()
}

// Lost: see program.Store.
func (s *store) Lost() uint64 {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return 0
	}
	return s.word(code.CellLost)
}

// retire frees the rows of ended threads, and keeps their values in past. The caller holds the pool's
// lock.
func (s *store) retire(hasEnded func(code.Thread) bool) {
	epoch := s.word(code.CellEpoch)
	ended := make(map[uint32]bool)
	var page []code.Image
	var buckets []program.Distribution
	for _, n := range s.rows {
		if !hasEnded(s.pool.row(n).Key().Thread()) {
			continue
		}
		copied, err := s.copy(n)
		if err != nil {
			continue
		}
		ended[n] = true
		if s.notes != nil {
			s.notes.leave(s, n, &copied)
		}
		if copied.At(code.RowEpoch) == epoch {
			page = append(page, copied)
			if s.pool.Form.Buckets > 0 {
				buckets = append(buckets, s.pool.row(n).Distribution())
			}
		}
	}
	if s.notes != nil {
		s.notes.forgetOld()
	}
	if err := s.writePage(page, buckets); err != nil {
		return // the rows stay in the pool; the next sweep tries again
	}
	for i := range page {
		var in program.Distribution
		if buckets != nil {
			in = buckets[i]
		}
		s.addPast(&page[i], in)
	}
	s.rows = slices.DeleteFunc(s.rows, func(n uint32) bool {
		if ended[n] {
			s.pool.release(n)
		}
		return ended[n]
	})
	s.fold()
}

// addPast keeps the values of a row whose space will be freed.
func (s *store) addPast(copied *code.Image, buckets program.Distribution) {
	row := dated{copied.Decode(s.pool.Form.Kind), copied.At(code.RowFirst), buckets}
	row.Alive = s.target.knewAlive(copied.Key())
	s.past = append(s.past, row)
}

// fold adds up the rows of the threads that ended first, so that program.RowsOfEnded rows are left. The
// sum is in the first row of past, which names no thread. The caller has freed the space of the rows: before,
// the journal must name each row, so that the next monitor can free the space of those that are still in the
// pool. The caller holds the pool's lock.
func (s *store) fold() {
	stores := len(s.pool.stores)
	if !program.TooManyEnded(len(s.past), stores) {
		return
	}
	n := len(s.past) - program.RowsOfEnded(stores) + 1
	left := slices.Concat([]dated{sumOf(s.past[:n])}, s.past[n:])
	if s.rewritePages(left) == nil { // otherwise the old pages are still valid, and the next sweep tries again
		s.past = left
	}
}

// sumOf adds rows up. The sum sorts before all other rows.
func sumOf(rows []dated) (sum dated) {
	for i := range rows {
		sum.Row = sum.Row.Join(rows[i].Row)
		sum.buckets = sum.buckets.Join(rows[i].buckets)
	}
	return sum
}

// Close: see program.Store.
func (s *store) Close() error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.pool.discover()
	for _, n := range s.rows {
		s.pool.release(n)
	}
	delete(s.pool.stores, uint32(s.cell))
	s.unkeep()
	s.memory.slab.give(s.cell, 1)
	s.target.leave()
	return nil
}
