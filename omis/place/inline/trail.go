//go:build linux && amd64

package inline

import (
	"slices"

	"mirador/omis/program"
)

// notes is what a trace knows of its rings. The target's lock guards it.
type notes struct {
	store *store
	ring  *cell // nil: nothing was to be noted yet
	read  map[*owner]*progress
	taken []program.Record // read, but not handed out yet
	lost  uint64           // since they were handed out last
	told  uint64           // how many the crowd had lost then
}

// progress is how far the notes of a thread have been read.
type progress struct {
	next    uint64
	waited  bool     // the last time, that one was not written yet either
	skipped []uint64 // numbers of those that were waited for, but may come yet
	last    int64    // the time of the one before next; clocks are known to some nanoseconds only
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

// enter tells a step where the rings are.
func (l *notes) enter(op program.Op, s *step) {
	s.mark, s.ring, s.rooms = op.Mark, l.store.target.memory.distance(*l.ring), l.ring.kind.groups()
}

// written is how many notes a thread has ever begun.
func (l *notes) written(o *owner) uint64 {
	m := l.store.target.memory
	at := m.rowAt(o.slot, l.store.cell)
	if !m.inUse(at) {
		return 0
	}
	return m.word(at).Load()
}

// follow reads what a thread has noted since the last time. A note that is not written yet
// is waited for until the next time.
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

// lookBack looks once more at notes that were skipped. late tells that one will not be
// written any more.
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

// look reads one note; its time is in ticks.
func (l *notes) look(o *owner, n uint64) (r program.Record, whole, gone bool) {
	r, whole, gone = l.store.target.memory.note(o.slot, *l.ring, n)
	r.TID, r.Started, r.Alive = o.tid, o.started, o.alive
	return r, whole, gone
}

// leave reads what threads have noted that have ended.
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

// bound forgets the oldest records as soon as there are twice as many as are kept. A process
// can fill more rings than it has threads.
func (l *notes) bound() {
	if len(l.taken) > 2*program.MostUnread {
		kept, lost := program.Newest(l.taken)
		l.taken, l.lost = kept, l.lost+lost
	}
}

// forget has threads note from now on.
func (l *notes) forget(known []*owner) {
	if l.ring == nil {
		return
	}
	for _, o := range known {
		l.read[o] = &progress{next: l.written(o)}
	}
	l.taken, l.lost, l.told = nil, 0, 0
}

// inNodeTime makes times by the clock of the node of ticks; by the kernel's monotonic one
// where the patcher is no node.
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
