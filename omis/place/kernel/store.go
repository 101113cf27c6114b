//go:build linux && amd64

package kernel

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/proc"
)

// store is an omis.Store in the kernel.
type store struct {
	placer *Placer
	target *target
	proc   omis.ProcID
	kind   omis.StoreKind

	rows  *ebpf.Map // key -> row
	blank *ebpf.Map // what a new row is made from
	epoch word      // of the rows that count
	made  word      // rows that were begun
	lost  word      // occurrences without a row

	mu     sync.Mutex
	past   []dated // rows that were taken out of the table, of this epoch
	taken  uint64  // of the rows made
	alive  map[key]bool
	closed bool
}

// dated is a row with the time when it was begun, by which rows are ordered.
type dated struct {
	omis.Row
	first uint64
}

// capacity is how many rows a table holds; rows of threads that have ended are taken
// out of it when it is half full. An empty one takes 256 KiB.
const capacity = 1 << 14

var _ omis.Store = (*store)(nil)

// cleared is where the words end that a new epoch clears.
func (s *store) cleared() int16 {
	if s.kind == omis.StoreSums {
		return rowSum + 8
	}
	return rowBegun
}

func (s *store) size() uint32 {
	if s.kind == omis.StoreSums {
		return sizeOfSums
	}
	return sizeOfIntervals
}

// open makes the tables. The caller holds Placer.mu.
func (s *store) open() (err error) {
	defer func() {
		if err != nil {
			s.free()
		}
	}()
	for _, w := range []*word{&s.epoch, &s.made, &s.lost} {
		if *w, err = s.placer.control.take(); err != nil {
			return err
		}
	}
	s.placer.control.at(s.epoch).Store(1) // a row just made is of epoch 0
	if s.blank, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: s.size(), MaxEntries: 1}); err != nil {
		return err
	}
	s.rows, err = ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.Hash, KeySize: 16, ValueSize: s.size(), MaxEntries: capacity, Flags: unix.BPF_F_NO_PREALLOC,
	})
	return err
}

// free gives everything back. The caller holds Placer.mu.
func (s *store) free() {
	for _, m := range []*ebpf.Map{s.rows, s.blank} {
		if m != nil {
			m.Close()
		}
	}
	for _, w := range []word{s.epoch, s.made, s.lost} {
		if w != 0 {
			s.placer.control.give(w)
		}
	}
}

func (s *store) word(w word) uint64 { return s.placer.control.at(w).Load() }

func (s *store) Rows() ([]omis.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	all := slices.Clone(s.past)
	err := s.each(func(k key, row dated) error {
		row.Alive = s.wasAlive(k)
		all = append(all, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.first, b.first) })
	list := make([]omis.Row, len(all))
	for i := range all {
		list[i] = all[i].Row
	}
	return list, nil
}

// each reads the rows of this epoch that are in the table. The caller holds mu.
func (s *store) each(do func(key, dated) error) error {
	epoch := s.word(s.epoch)
	buf := make([]byte, s.size())
	var k key
	for more := s.rows.NextKey(nil, &k); ; more = s.rows.NextKey(k, &k) {
		switch {
		case errors.Is(more, ebpf.ErrKeyNotExist):
			return nil
		case more != nil:
			return omis.Errorf(omis.OSError, "cannot read what programs in the kernel have measured: %v", more)
		}
		if err := s.read(k, buf); err != nil {
			return err
		}
		if wordAt(buf, rowEpoch) != epoch {
			continue
		}
		if err := do(k, dated{decode(k, buf, s.kind), wordAt(buf, rowFirst)}); err != nil {
			return err
		}
	}
}

// tries bounds how often a row is read that changes meanwhile: it takes longer to be
// hit than to be copied.
const tries = 10_000

func (s *store) read(k key, buf []byte) error {
	for range tries {
		if err := s.rows.Lookup(k, buf); err != nil {
			return omis.Errorf(omis.OSError, "cannot read what thread %d has measured in the kernel: %v", k.TID, err)
		}
		if consistent(buf) {
			return nil
		}
	}
	return omis.Errorf(omis.OSError, "cannot read what thread %d measures in the kernel: it never pauses", k.TID)
}

// wasAlive tells whether a thread was there when its row was read first. The caller
// holds mu.
func (s *store) wasAlive(k key) bool {
	was, known := s.alive[k]
	if !known {
		was = s.isAlive(k)
		s.alive[k] = was
	}
	return was
}

func (s *store) isAlive(k key) bool {
	ticks, err := proc.ThreadStart(s.proc.PID, int(k.TID))
	return err == nil && ticks == k.Started/nsPerTick
}

// Reset begins a new epoch.
func (s *store) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.placer.control.at(s.epoch).Add(1)
	s.placer.control.at(s.lost).Store(0)
	s.past = nil
	return nil
}

func (s *store) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	return s.word(s.lost)
}

// sweep takes rows of ended threads out of a table that is half full.
func (s *store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.word(s.made)-s.taken < capacity/2 {
		return
	}
	tids, _ := proc.Threads(s.proc.PID) // none where the process has ended
	var ended []key
	epoch := s.word(s.epoch)
	buf := make([]byte, s.size())
	var k key
	for more := s.rows.NextKey(nil, &k); more == nil; more = s.rows.NextKey(k, &k) {
		if slices.Contains(tids, int(k.TID)) && s.isAlive(k) {
			continue
		}
		ended = append(ended, k)
		if err := s.read(k, buf); err == nil && wordAt(buf, rowEpoch) == epoch {
			row := dated{decode(k, buf, s.kind), wordAt(buf, rowFirst)}
			row.Alive = s.alive[k]
			s.past = append(s.past, row)
		}
		delete(s.alive, k)
	}
	for _, k := range ended {
		if s.rows.Delete(k) == nil {
			s.taken++
		}
	}
}

func (s *store) Close() error {
	s.placer.drop(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	s.free()
	return nil
}
