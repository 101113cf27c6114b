package pa

import (
	"math/bits"

	"mirador/omis"
)

// maxOpen bounds the intervals of a thread that are open at a time. A recursion
// that is deeper is not measured further down; what is dropped counts as
// unfinished.
const maxOpen = 1 << 16

// row is what a timer knows of one thread. Sums are exact integers of nanoseconds:
// a variance is the small difference of large sums.
type row struct {
	owner
	sampler
	stack            // of the thread itself
	away       int64 // intervals that are open too, in goroutines or where programs have them
	count      int64
	unfinished int64
	skipped    int64 // began and were not to be timed
	last       uint64
	min, max   uint64
	sum        uint128
	squares    uint128
	histogram
}

type interval struct {
	sp   uint64 // 0: begun by an event without a stack pointer
	from int64
}

// stack is the intervals of a thread or a goroutine that are open, the innermost last.
type stack struct{ open []interval }

// A goroutine may end an interval on another thread than it began it on, and its intervals
// are on a stack of its own. They are counted with the thread on which that happens: away
// is then how many more began on a thread than ended there.

// start opens an interval on a stack. A frame that is still open although the stack is back
// at its place, or above, was left by an exception or a longjmp: that is seen also by
// one that is not timed, whose end would else be taken for that of the other. Without a
// stack pointer an end could not be told from that of another, so all are timed.
func (r *row) start(s *stack, sp uint64, now func() int64) {
	if sp != 0 {
		for n := len(s.open); n > 0 && s.open[n-1].sp != 0 && s.open[n-1].sp <= sp; n-- {
			r.drop(s)
		}
		if !r.chooses() {
			r.skipped++
			return
		}
	}
	if len(s.open) == maxOpen {
		r.unfinished++
		return
	}
	r.opened(s, 1)
	s.open = append(s.open, interval{sp: sp, from: now()})
}

// stop closes the interval that was opened at the same place of a stack, and
// drops those further down, which can never end. Where one of the two has no stack
// pointer, the innermost interval is meant.
func (r *row) stop(s *stack, sp uint64, at int64) {
	for n := len(s.open); n > 0; n-- {
		top := s.open[n-1]
		switch {
		case sp == 0 || top.sp == 0 || top.sp == sp:
			s.open = s.open[:n-1]
			r.opened(s, -1)
			r.measured(uint64(max(at-top.from, 0)))
			return
		case top.sp > sp:
			return // its start was not seen
		}
		r.drop(s)
	}
}

func (r *row) drop(s *stack) {
	s.open = s.open[:len(s.open)-1]
	r.opened(s, -1)
	r.unfinished++
}

// opened counts an interval of a goroutine that began or ended on the row's thread.
func (r *row) opened(s *stack, n int64) {
	if s != &r.stack {
		r.away += n
	}
}

func (r *row) measured(ns uint64) {
	if r.count == 0 || ns < r.min {
		r.min = ns
	}
	r.max = max(r.max, ns)
	r.last = ns
	r.count++
	r.sum.add(0, ns)
	r.squares.add(bits.Mul64(ns, ns))
	r.histogram.measured(ns)
}

// join adds what another row has measured; the last value is that of the row that
// came last.
func (r *row) join(other *row) {
	r.unfinished += other.unfinished
	r.skipped += other.skipped
	r.away += other.away + int64(len(other.open))
	if other.count == 0 {
		return
	}
	if r.count == 0 || other.min < r.min {
		r.min = other.min
	}
	r.max = max(r.max, other.max)
	r.last = other.last
	r.count += other.count
	r.sum.add(other.sum.hi, other.sum.lo)
	r.squares.add(other.squares.hi, other.squares.lo)
	r.histogram.join(&other.histogram)
}

// append adds the components of the row, in seconds.
func (r *row) append(list []omis.Value) []omis.Value {
	return append(list,
		omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.count),
		omis.Float(seconds(r.last)), omis.Float(r.sum.float()/1e9), omis.Float(r.squares.float()/1e18),
		omis.Float(seconds(r.min)), omis.Float(seconds(r.max)), omis.Int(r.unfinished))
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

// uint128 is an unsigned integer of 128 bits.
type uint128 struct{ hi, lo uint64 }

func (u *uint128) add(hi, lo uint64) {
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, lo, 0)
	u.hi, _ = bits.Add64(u.hi, hi, carry)
}

func (u *uint128) float() float64 { return float64(u.hi)*(1<<64) + float64(u.lo) }
