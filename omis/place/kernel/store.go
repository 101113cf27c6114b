//go:build linux && amd64

package kernel

import (
	"cmp"
	"slices"
	"time"

	"mirador/omis"
	"mirador/omis/program"
)

// store is an program.Store in the kernel. The pool's lock guards it.
type store struct {
	placer *Placer
	pool   *pool
	target *target
	cell   unit // its number: the epoch of the rows that count, and how many occurrences have none

	kept    bool      // it outlives the monitor
	pages   []uint32  // where its rows are written down that were given back
	written []key     // whose they are, by a former monitor
	rows    []uint32  // in the pool
	room    [2]uint32 // for the first of them
	past    []dated   // rows that were given back, of this epoch
	closed  bool

	writers writers // guarded by Placer.mu
	notes   *notes  // of a trace; nil: there are none
}

// Words of a store's unit.
const (
	cellEpoch = 0
	cellLost  = 1
)

// writers are who changes the rows of a store. A program at a uprobe may be interrupted
// by one that sees its thread lose the processor: they must not change the same row.
type writers uint8

const (
	atAddresses writers = 1 << iota
	atSwitches
)

// claim notes who changes the stores of a program. The caller holds Placer.mu.
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

// dated is a row with the time when it was begun, by which rows are ordered.
type dated struct {
	program.Row
	first   uint64
	buckets program.Distribution // of one that was given back
}

var _ program.RowAppender = (*store)(nil)

func (s *store) word(i int) uint64 { return s.placer.slab.word(s.cell, i).Load() }

func (s *store) Rows() ([]program.Row, error) { return s.AppendRows(nil) }

// AppendRows: see program.RowAppender.
func (s *store) AppendRows(list []program.Row) ([]program.Row, error) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.discover()
	return s.append(list, &lively{})
}

// append is AppendRows after rows were discovered. The caller holds the pool's lock.
func (s *store) append(list []program.Row, last *lively) ([]program.Row, error) {
	if s.closed {
		return list, nil
	}
	epoch := s.word(cellEpoch)
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
		if copied.at(rowEpoch) == epoch {
			all = append(all, dated{Row: copied.decode(s.pool.form.kind), first: copied.at(rowFirst)})
			all[len(all)-1].Alive = last.wasAlive(s.target, copied.key())
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

// appendOnly is append where there is one row.
func (s *store) appendOnly(list []program.Row, epoch uint64, last *lively) ([]program.Row, error) {
	copied, err := s.copy(s.rows[0])
	if err != nil || copied.at(rowEpoch) != epoch {
		return list, err
	}
	list = append(list, copied.decode(s.pool.form.kind))
	list[len(list)-1].Alive = last.wasAlive(s.target, copied.key())
	return list, nil
}

// few is how many rows most stores have at most.
const few = 4

// patience is how long a row is looked at that changes meanwhile: it takes longer to be
// hit than to be copied, but who changes it may be kept waiting in the middle.
const (
	tries    = 1000
	pause    = 50 * time.Microsecond
	patience = time.Second
)

// copy is a consistent copy of a row. The caller holds the pool's lock.
func (s *store) copy(n uint32) (copied image, err error) {
	r := s.pool.row(n)
	var deadline time.Time
	for try := 0; !r.copy(&copied); try++ {
		switch {
		case try < tries:
			continue
		case try == tries:
			deadline = time.Now().Add(patience)
		case time.Now().After(deadline):
			return copied, omis.Errorf(omis.OSError, "cannot read what thread %d measures in the kernel: it never pauses", r.key().TID)
		}
		time.Sleep(pause)
	}
	return copied, nil
}

// Reset begins a new epoch.
func (s *store) Reset() error {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil
	}
	s.placer.slab.word(s.cell, cellEpoch).Add(1)
	s.placer.slab.word(s.cell, cellLost).Store(0)
	s.past = nil
	return s.dropPages()
}

func (s *store) Lost() uint64 {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return 0
	}
	return s.word(cellLost)
}

// retire gives back the rows of threads that have ended. The caller holds the pool's
// lock.
func (s *store) retire(hasEnded func(thread) bool) {
	epoch := s.word(cellEpoch)
	ended := make(map[uint32]bool)
	var page []image
	var buckets []program.Distribution
	for _, n := range s.rows {
		if !hasEnded(s.pool.row(n).key().thread()) {
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
		if copied.at(rowEpoch) == epoch {
			page = append(page, copied)
			if s.pool.form.buckets > 0 {
				buckets = append(buckets, s.pool.row(n).distribution())
			}
		}
	}
	if s.notes != nil {
		s.notes.forgetOld()
	}
	if err := s.turn(page, buckets); err != nil {
		return // there is room yet, and the next time it may succeed
	}
	for i := range page {
		var in program.Distribution
		if buckets != nil {
			in = buckets[i]
		}
		s.keep(&page[i], in)
	}
	s.rows = slices.DeleteFunc(s.rows, func(n uint32) bool {
		if ended[n] {
			s.pool.release(n)
		}
		return ended[n]
	})
	s.fold()
}

// keep remembers a row that is given back.
func (s *store) keep(copied *image, buckets program.Distribution) {
	row := dated{copied.decode(s.pool.form.kind), copied.at(rowFirst), buckets}
	row.Alive = s.target.knewAlive(copied.key())
	s.past = append(s.past, row)
}

// Close: see program.Store.
func (s *store) Close() error {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
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
	s.forget()
	s.placer.slab.give(s.cell, 1)
	s.target.leave()
	return nil
}
