//go:build linux && amd64

package inline

import (
	"cmp"
	"slices"
	"time"

	"mirador/omis/program"
)

// store is a program.Store in the memory of a process.
type store struct {
	target *target
	kind   program.StoreKind
	key    string

	// The target's lock guards the rest.
	cell   cell
	other  *cell // of sums: for values other than 1; made when it is needed
	notes  notes // of a trace
	past   []record
	closed bool
}

// dated is a row with the time when it was begun, by which rows are sorted.
type dated struct {
	program.Row
	first uint64
}

var _ program.RowAppender = (*store)(nil)

// cells returns the cells of the store.
func (s *store) cells() []cell {
	if s.other == nil {
		return []cell{s.cell}
	}
	return []cell{s.cell, *s.other}
}

// cellFor returns the cell that a step works on. The caller holds the target's lock.
func (s *store) cellFor(op program.Op) (cell, error) {
	if op.Do == program.OpTrace {
		return s.cell, s.notes.open(s, op.Room)
	}
	if op.Do != program.OpAdd || op.Value == 1 {
		return s.cell, nil
	}
	if s.other == nil {
		c, err := s.target.memory.take(cellSums, s.key)
		if err != nil {
			return c, err
		}
		s.other = &c
	}
	return *s.other, nil
}

// Rows: see program.Store.
func (s *store) Rows() ([]program.Row, error) { return s.AppendRows(nil) }

// AppendRows: see program.RowAppender.
func (s *store) AppendRows(list []program.Row) (_ []program.Row, err error) {
	t := s.target
	defer t.release(t.hold(), &err)
	if t.broken != nil {
		return list, t.broken
	}
	t.meet()
	return s.append(list, &pace{target: t}), nil
}

// append adds the rows to a list. The caller holds the target's lock, and has called meet.
func (s *store) append(list []program.Row, p *pace) []program.Row {
	if s.closed {
		return list
	}
	var room [few]dated
	all := room[:0]
	for i := range s.past {
		all = append(all, s.past[i].dated)
	}
	all = s.readAll(all)
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
		all = nobodys(all)
	}
	for i := range all {
		list = append(list, all[i].Row)
		if s.kind.HasIntervals() {
			row := &list[len(list)-1]
			row.Intervals = inNanoseconds(row.Intervals, p.tick())
		}
	}
	return list
}

// appendOnly is append for a process with one thread, and a store that is open.
func (s *store) appendOnly(list []program.Row, p *pace) []program.Row {
	known := s.target.known
	r := s.readOne(known[0])
	if r.torn {
		r = s.read(known)[0]
	}
	if !r.any {
		return list
	}
	list = append(list, r.Row)
	row := &list[len(list)-1]
	known[0].sign(row)
	if s.kind.HasIntervals() {
		row.Intervals = inNanoseconds(row.Intervals, p.tick())
	}
	return list
}

// few is the number of rows that append sorts without allocating memory. Most stores have no more.
const few = 4

// readAll adds the rows of all known threads that have measured something.
func (s *store) readAll(all []dated) []dated {
	before := len(all)
	for _, o := range s.target.known {
		r := s.readOne(o)
		if r.torn {
			return s.readPatiently(all[:before])
		}
		if r.any {
			all = append(all, told(o, r))
		}
	}
	return all
}

// readPatiently is readAll, if a row is in the middle of a change.
func (s *store) readPatiently(all []dated) []dated {
	known := s.target.known
	for i, r := range s.read(known) {
		if r.any {
			all = append(all, told(known[i], r))
		}
	}
	return all
}

// sign writes the thread of a row.
func (o *owner) sign(r *program.Row) { r.TID, r.Started, r.Alive = o.tid, o.started, o.alive }

// told returns a row with its thread.
func told(o *owner, r reading) dated {
	o.sign(&r.Row)
	return dated{r.Row, r.first}
}

// read reads the rows of some slots.
func (s *store) read(owners []*owner) []reading {
	list := make([]reading, len(owners))
	torn := 0
	for i, o := range owners {
		if list[i] = s.readOne(o); list[i].torn {
			torn++
		}
	}
	t := s.target
	for n := 0; torn > 0 && time.Now().After(t.patient); n++ {
		if n == pauses {
			t.patient = time.Now().Add(impatience)
			break
		}
		time.Sleep(pause)
		for i, o := range owners {
			if !list[i].torn {
				continue
			}
			if list[i] = s.readOne(o); !list[i].torn {
				torn--
			}
		}
	}
	for i := range list {
		if list[i].torn {
			list[i] = list[i].mended()
		}
	}
	return list
}

func (s *store) readOne(o *owner) reading {
	m := s.target.memory
	if s.kind.HasIntervals() {
		return m.timer(o.slot, s.cell)
	}
	if s.cell.kind >= cellRing {
		return reading{} // a row of a former monitor; it is not known how much of it was moved
	}
	r := reading{first: o.first}
	ones := m.ones(o.slot, s.cell)
	r.Value, r.any = int64(ones), ones != 0
	if s.other != nil {
		v, any, torn := m.sum(o.slot, *s.other)
		r.Value, r.any, r.torn = r.Value+int64(v), r.any || any, torn
	}
	return r
}

// Reset: see program.Store.
func (s *store) Reset() (err error) {
	t := s.target
	defer t.release(t.hold(), &err)
	if s.closed {
		return nil
	}
	t.meet()
	s.forgetPast()
	s.notes.forget(t.known)
	for _, c := range s.cells() {
		t.memory.lost(c).Store(0)
		t.memory.forgetGoroutines(c)
		for _, o := range t.known {
			if s.kind.HasIntervals() {
				t.memory.forgetTimer(o.slot, c)
			} else {
				t.memory.forgetSums(o.slot, c)
			}
		}
	}
	return nil
}

// move moves rows of ended threads out of their slots. It writes those of stores that outlive the monitor
// to the ledger.
func (s *store) move(ended []*owner) error {
	s.notes.leave(ended)
	for i, r := range s.read(ended) {
		if !r.any || slices.ContainsFunc(s.past, func(p record) bool { return p.claim() == ended[i].claim() }) {
			continue // there is no row, or a former monitor has moved it
		}
		s.target.memory.serial++
		rec := record{dated: told(ended[i], r), taken: ended[i].first, serial: s.target.memory.serial}
		if s.kind == program.StoreHistograms {
			rec.counts = s.target.memory.counts(ended[i].slot, s.cell)
		}
		if s.key != "" {
			if err := s.target.memory.enterRecord(s.cell.entry, &rec); err != nil {
				return err
			}
		}
		s.past = append(s.past, rec)
	}
	return nil
}

func (s *store) forgetPast() {
	for i := range s.past {
		if s.key != "" {
			s.target.memory.strike(&s.past[i])
		}
	}
	s.past = nil
}

// Lost: see program.Store.
func (s *store) Lost() (n uint64) {
	t := s.target
	var err error // reading rows returns the same error
	defer t.release(t.hold(), &err)
	if s.closed {
		return 0
	}
	for _, c := range s.cells() {
		n += t.memory.lost(c).Load()
	}
	return n
}

// Close: see program.Store.
func (s *store) Close() (err error) {
	t := s.target
	defer t.release(t.hold(), &err)
	if s.closed {
		return nil
	}
	s.closed = true
	t.meet()
	s.forgetPast()
	for _, c := range s.cells() {
		t.clear(c)
	}
	if s.notes.ring != nil {
		t.clear(*s.notes.ring)
	}
	delete(t.stores, s)
	return t.leave()
}
