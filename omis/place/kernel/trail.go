//go:build linux && amd64

package kernel

import (
	"fmt"
	"sync"

	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// trail is a program.Trail in the kernel. Its store is opened when a program says how many records it
// must hold. memory.mu guards the opening, too.
type trail struct {
	mu     sync.Mutex
	store  *store
	opened bool
}

var _ program.Trail = (*trail)(nil)

// openTrails opens the traces that a program appends to. The caller holds memory.mu.
func openTrails(steps program.Program) error {
	for _, op := range steps {
		if op.Do != program.OpTrace {
			continue
		}
		if err := op.Store.(*trail).open(op.Room); err != nil {
			return &program.Refusal{Why: fmt.Sprintf("cannot make room for records in the kernel: %v", err)}
		}
	}
	return nil
}

func (t *trail) open(room int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened {
		return nil
	}
	err := t.store.open(code.RowsWithNotes + code.RingFor(room))
	t.opened = err == nil
	return err
}

// storeIn returns the store that a step writes to. The caller holds memory.mu.
func storeIn(op program.Op) *store {
	if t, ok := op.Store.(*trail); ok {
		return t.store
	}
	return op.Store.(*store)
}

// begun returns the store of a trace, nil if it is not open yet.
func (t *trail) begun() *store {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.opened {
		return nil
	}
	return t.store
}

// Rows: see program.Store.
func (t *trail) Rows() ([]program.Row, error) {
	if s := t.begun(); s != nil {
		return s.Rows()
	}
	return nil, nil
}

// Lost: see program.Store.
func (t *trail) Lost() uint64 {
	if s := t.begun(); s != nil {
		return s.Lost()
	}
	return 0
}

// Reset: see program.Store.
func (t *trail) Reset() error {
	s := t.begun()
	if s == nil {
		return nil
	}
	err := s.Reset()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.notes.taken, s.notes.lost, s.notes.told = nil, 0, 0
	return err
}

// Close: see program.Store.
func (t *trail) Close() error {
	if s := t.begun(); s != nil {
		return s.Close()
	}
	m := t.store.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !t.store.closed {
		t.store.closed = true
		t.store.target.leave()
	}
	return nil
}

// Take: see program.Trail.
func (t *trail) Take() ([]program.Record, uint64, error) {
	s := t.begun()
	if s == nil {
		return nil, 0, nil
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.closed {
		return nil, 0, nil
	}
	s.pool.discover()
	for _, n := range s.rows {
		copied, err := s.copy(n)
		if err != nil {
			return nil, 0, err
		}
		s.notes.follow(s, n, &copied)
	}
	l, rowless := s.notes, s.word(code.CellLost)
	list, lost := l.taken, l.lost+rowless-l.told
	l.taken, l.lost, l.told = nil, 0, rowless
	return list, lost, nil
}

// notes has the records of a trace that were read from rows. The pool's lock guards it.
type notes struct {
	read  map[uint32]*progress // by number of the row
	taken []program.Record     // not returned by Take yet
	lost  uint64               // records lost since the last Take, besides those of threads without a row
	told  uint64               // CellLost at the last Take
}

// progress says how far the records of one row have been read.
type progress struct {
	epoch, next uint64
}

// follow reads the records that a thread has written since the last call. copied is a copy of its row.
func (l *notes) follow(s *store, n uint32, copied *code.Image) {
	epoch := s.word(code.CellEpoch)
	if copied.At(code.RowEpoch) != epoch {
		return
	}
	p := l.read[n]
	if p == nil || p.epoch != epoch {
		p = &progress{epoch: epoch}
		l.read[n] = p
	}
	r, written := s.pool.row(n), copied.At(code.RowSum)
	if room := uint64(r.Form.Notes); written-p.next > room {
		l.lost += written - room - p.next
		p.next = written - room
	}
	who := copied.Key().Thread()
	alive := s.target.wasAlive(who)
	for ; p.next < written; p.next++ {
		note, whole := r.Note(p.next)
		if !whole {
			l.lost++
			continue
		}
		note.TID, note.Started, note.Alive, note.Time = who.TID, who.Ticks, alive, note.Time-s.memory.zero
		l.taken = append(l.taken, note)
	}
}

// leave reads the remaining records of an ended thread before its row is freed.
func (l *notes) leave(s *store, n uint32, copied *code.Image) {
	l.follow(s, n, copied)
	delete(l.read, n)
}

// forgetOld bounds the number of records that wait for Take.
func (l *notes) forgetOld() {
	kept, lost := program.Newest(l.taken)
	l.taken, l.lost = kept, l.lost+lost
}
