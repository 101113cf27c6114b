//go:build linux && amd64

package kernel

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/program"
)

// trail is an program.Trail in the kernel: a store that begins when it is known how many
// records it is to keep. Who begins it holds Placer.mu, too.
type trail struct {
	mu     sync.Mutex
	store  *store
	opened bool
}

var _ program.Trail = (*trail)(nil)

// newTrail is NewStore for records. The caller holds mu.
func (p *Placer) newTrail(id omis.ProcID) (program.Store, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	t, err := p.enter(id)
	if err != nil {
		return nil, &program.Refusal{Why: err.Error()}
	}
	return &trail{store: &store{placer: p, target: t, notes: &notes{read: make(map[uint32]*progress)}}}, nil
}

// openTrails has the traces begin that a program appends to. The caller holds mu.
func (p *Placer) openTrails(steps program.Program) error {
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
	err := t.store.open(rowsWithNotes + ringFor(room))
	t.opened = err == nil
	return err
}

// storeIn is the store that a step changes. The caller holds Placer.mu.
func storeIn(op program.Op) *store {
	if t, ok := op.Store.(*trail); ok {
		return t.store
	}
	return op.Store.(*store)
}

// begun is the store of a trace; nil: it has not begun yet.
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
	p := t.store.placer
	p.mu.Lock()
	defer p.mu.Unlock()
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
	l, rowless := s.notes, s.word(cellLost)
	list, lost := l.taken, l.lost+rowless-l.told
	l.taken, l.lost, l.told = nil, 0, rowless
	return list, lost, nil
}

// notes is what a trace knows of its notes. The pool's lock guards it.
type notes struct {
	read  map[uint32]*progress // by rows
	taken []program.Record     // read, but not handed out yet
	lost  uint64               // since they were handed out last
	told  uint64               // how many had no row then
}

// progress is how far the notes of a thread have been read.
type progress struct {
	epoch, next uint64
}

// follow reads what a thread has noted in a row since the last time.
func (l *notes) follow(s *store, n uint32, copied *image) {
	epoch := s.word(cellEpoch)
	if copied.at(rowEpoch) != epoch {
		return
	}
	p := l.read[n]
	if p == nil || p.epoch != epoch {
		p = &progress{epoch: epoch}
		l.read[n] = p
	}
	r, written := s.pool.row(n), copied.at(rowSum)
	if room := uint64(r.form.notes); written-p.next > room {
		l.lost += written - room - p.next
		p.next = written - room
	}
	who := copied.key().thread()
	alive := s.target.wasAlive(who)
	for ; p.next < written; p.next++ {
		note, whole := r.note(p.next)
		if !whole {
			l.lost++
			continue
		}
		note.TID, note.Started, note.Alive, note.Time = who.tid, who.ticks, alive, note.Time-s.placer.zero
		l.taken = append(l.taken, note)
	}
}

// leave reads what a thread has noted that has ended, before others get its row.
func (l *notes) leave(s *store, n uint32, copied *image) {
	l.follow(s, n, copied)
	delete(l.read, n)
}

// forgetOld bounds what is kept until somebody reads it.
func (l *notes) forgetOld() {
	kept, lost := program.Newest(l.taken)
	l.taken, l.lost = kept, l.lost+lost
}

// comparisons is how often two clocks are compared.
const comparisons = 8

// DateBy has records be dated by a clock, which runs as the kernel's monotonic one does;
// else they are dated by that one. It comes before the first store.
func (p *Placer) DateBy(now func() int64) {
	least := int64(math.MaxInt64)
	for range comparisons {
		before := monotonic()
		read := now()
		after := monotonic()
		if after-before < least {
			least, p.zero = after-before, before+(after-before)/2-read
		}
	}
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // there is no Linux without it
	return ts.Nano()
}
