package landing

import "sync/atomic"

// places are what a pass over the module found about a range of its code. They are sets of bits, because there are
// millions of them in a large program, and in a hostile file a third of all bytes.
type places struct {
	begin, end uint64
	landings   bits // where control may come from elsewhere
	called     bits // where calls with a displacement may lead
}

// bits is a set of offsets from the beginning of a range.
type bits []uint64

func newPlaces(begin, end uint64) *places {
	words := (end - begin + 63) / 64
	return &places{begin, end, make(bits, words), make(bits, words)}
}

// add may be called by several goroutines.
func (b bits) add(i uint64) {
	word, bit := &b[i/64], uint64(1)<<(i%64)
	if atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}

func (b bits) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

// land adds a landing if it is in the range.
func (p *places) land(at uint64) {
	if at-p.begin < p.end-p.begin {
		p.landings.add(at - p.begin)
	}
}

// call adds the target of a call if it is in the range.
func (p *places) call(at uint64) {
	if at-p.begin < p.end-p.begin {
		p.called.add(at - p.begin)
	}
}

// lands reports whether there is a landing from begin on and before end.
func (p *places) lands(begin, end uint64) bool {
	for at := begin; at < end; at++ {
		if p.landings.has(at - p.begin) {
			return true
		}
	}
	return false
}

// A pass over 400 MB of code takes a second of CPU time, whatever it looks for. So the first question is answered by what
// leads to its neighbourhood, and the second, if it is about another one, by what leads to any code.
const (
	large         = 64 << 20 // the length of code from which this is done
	neighbourhood = 16 << 20
	margin        = 1 << 12 // around a neighbourhood, for questions at its border
)

// near returns the places in a range of the code, nil if the file can no longer be read.
func (m *Module) near(begin, end uint64) *places {
	if p := m.places.Load(); p.cover(begin, end) {
		return p
	}
	m.gathering.Lock()
	defer m.gathering.Unlock()
	p := m.places.Load()
	if p.cover(begin, end) {
		return p
	}
	next := newPlaces(0, m.Size)
	if p == nil && m.Size > large && end-begin < margin {
		at := begin &^ (neighbourhood - 1)
		next = newPlaces(at-min(at, margin), min(at+neighbourhood+margin, m.Size))
	}
	if m.mapped(func(s *scan) error { return s.find(next) }) != nil {
		return nil
	}
	m.places.Store(next)
	return next
}

func (p *places) cover(begin, end uint64) bool { return p != nil && p.begin <= begin && end <= p.end }
