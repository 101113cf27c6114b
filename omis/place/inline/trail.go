//go:build linux && amd64

package inline

import (
	"math/bits"
	"slices"

	"mirador/omis/program"
)

// notes is what the monitor knows of the rings of a trace. The target's lock guards it.
type notes struct {
	store *store
	ring  *cell // nil: no program has appended to the trace yet
	read  map[*owner]*progress
	taken []program.Record // not returned by Take yet
	lost  uint64           // since the last Take
	told  uint64           // lost hits of the crowd at the last Take
	// inTicks has the marks of records whose values are times.
	inTicks map[int32]bool
}

// progress says how far the notes of a thread have been read.
type progress struct {
	next    uint64
	waited  bool     // next was not written at the last reading either
	skipped []uint64 // numbers of notes that were skipped and may still be written
	last    int64    // time of the note before next; clocks are accurate to some nanoseconds only
}

// open makes the rings.
func (l *notes) open(s *store, room int64) error {
	if l.ring != nil {
		return nil
	}
	c, err := s.target.memory.take(ringFor(room), s.key)
	if err == nil {
		l.store, l.ring, l.read = s, &c, make(map[*owner]*progress)
	}
	return err
}

// enter writes to a step where the rings are.
func (l *notes) enter(op program.Op, s *step) {
	s.mark, s.ring, s.rooms = op.Mark, l.store.target.memory.distance(*l.ring), l.ring.kind.groups()
}

// ticks records whether the values of a step's records are times, which code takes in ticks.
func (l *notes) ticks(op program.Op, times bool) {
	if op.Load.From != program.FromStep || !times {
		return
	}
	if l.inTicks == nil {
		l.inTicks = make(map[int32]bool)
	}
	l.inTicks[op.Mark] = true
}

// written returns how many notes a thread has begun in all.
func (l *notes) written(o *owner) uint64 {
	m := l.store.target.memory
	at := m.rowAt(o.slot, l.store.cell)
	if !m.inUse(at) {
		return 0
	}
	return m.word(at).Load()
}

// follow reads the notes of a thread since the last call. It waits one call for a note that is not written
// yet.
func (l *notes) follow(o *owner, ended bool, inTime func(uint64) int64) {
	p := l.read[o]
	if p == nil {
		p = &progress{}
		l.read[o] = p
	}
	written, room := l.written(o), uint64(l.ring.kind.groups()*notesOfRoom)
	if written < p.next || written > mostCounted {
		*p = progress{next: written, last: p.last} // the process has written the number itself
		return
	}
	l.lookBack(o, p, func(n uint64) bool { return ended || n+room < written }, inTime)
	if written-p.next > room {
		l.lost += written - room - p.next
		p.next, p.waited = written-room, false
	}
	for ; p.next < written; p.next++ {
		r, whole, gone := l.look(o, p.next)
		switch {
		case whole:
			r.Time = max(inTime(uint64(r.Time)), p.last)
			l.taken, p.last = append(l.taken, r), r.Time
		case gone || ended:
			l.lost++
		case !p.waited:
			p.waited = true
			return
		default:
			p.skipped = append(p.skipped, p.next)
		}
		p.waited = false
	}
}

// lookBack reads notes that were skipped. late reports whether a note will not be written any more.
func (l *notes) lookBack(o *owner, p *progress, late func(uint64) bool, inTime func(uint64) int64) {
	p.skipped = slices.DeleteFunc(p.skipped, func(n uint64) bool {
		r, whole, gone := l.look(o, n)
		switch {
		case whole:
			r.Time = inTime(uint64(r.Time))
			l.taken = append(l.taken, r)
		case gone || late(n):
			l.lost++
		}
		return whole || gone || late(n)
	})
}

// look reads one note, with its time in ticks.
func (l *notes) look(o *owner, n uint64) (r program.Record, whole, gone bool) {
	r, whole, gone = l.store.target.memory.note(o.slot, *l.ring, n)
	r.TID, r.Started, r.Alive = o.tid, o.started, o.alive
	if l.inTicks[r.Mark] {
		high, low := bits.Mul64(uint64(r.Value), l.store.target.tick())
		r.Value = int64(high<<(64-fraction) | low>>fraction)
	}
	return r, whole, gone
}

// leave reads the notes of ended threads.
func (l *notes) leave(ended []*owner) {
	if l.ring == nil {
		return
	}
	inTime := l.store.target.inNodeTime()
	for _, o := range ended {
		l.follow(o, true, inTime)
		delete(l.read, o)
		l.bound()
	}
	kept, lost := program.Newest(l.taken)
	l.taken, l.lost = kept, l.lost+lost
}

// bound removes the oldest records when there are twice as many as are kept. A process can fill more rings
// than it has threads.
func (l *notes) bound() {
	if len(l.taken) > 2*program.MostUnread {
		kept, lost := program.Newest(l.taken)
		l.taken, l.lost = kept, l.lost+lost
	}
}

// forget skips all notes so far.
func (l *notes) forget(known []*owner) {
	if l.ring == nil {
		return
	}
	for _, o := range known {
		l.read[o] = &progress{next: l.written(o)}
	}
	l.taken, l.lost, l.told = nil, 0, 0
}

// inNodeTime converts ticks to the clock of the node, or to the kernel's monotonic clock if the patcher is
// no node.
func (t *target) inNodeTime() func(ticks uint64) int64 {
	if n, ok := t.placer.patcher.(interface{ Now() int64 }); ok {
		return t.converter(n.Now)
	}
	return t.converter(monotonic)
}

var _ program.Trail = (*store)(nil)

// Take: see program.Trail.
func (s *store) Take() (_ []program.Record, _ uint64, err error) {
	t, l := s.target, &s.notes
	defer t.release(t.hold(), &err)
	if s.closed || l.ring == nil || t.broken != nil {
		return nil, 0, t.broken
	}
	t.meet()
	inTime := t.inNodeTime()
	for _, o := range t.known {
		l.follow(o, false, inTime)
		l.bound()
	}
	crowds := t.memory.lost(s.cell).Load()
	list, lost := l.taken, l.lost+crowds-l.told
	l.taken, l.lost, l.told = nil, 0, crowds
	return list, lost, nil
}
