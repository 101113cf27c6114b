package pa

import (
	"mirador/omis"
	"mirador/omis/program"
)

// maxOpen bounds the open intervals of a thread. Deeper recursion is not measured; the
// dropped intervals count as unfinished.
const maxOpen = 1 << 16

// row holds what a timer measured of one thread. Sums are exact integers of nanoseconds,
// because a variance is the small difference of large sums.
type row struct {
	owner
	sampler
	stack            // intervals of the thread itself
	away       int64 // number of other open intervals: in goroutines or in programs' stores
	count      int64
	unfinished int64
	skipped    int64 // begun but not sampled
	last       uint64
	min, max   uint64
	sum        program.Uint128
	squares    program.Uint128
	histogram
	// settable says that the clock may be reset, so that it shows less at the end of an interval.
	settable bool
}

type interval struct {
	sp   uint64 // 0 if the event that began it has no stack pointer
	from int64
	wide map[owner]int64 // of a group
}

// stack holds the open intervals of a thread or a goroutine, the innermost last.
type stack struct{ open []interval }

// A goroutine may end an interval on another thread than the one where it began, so its
// open intervals have a stack of their own. The threads count them where they begin and
// end: away is the number begun on a thread minus the number ended there.

// start opens an interval on a stack. It first drops the intervals whose frames an
// exception or a longjmp left, as the stack pointer shows. It does so even for an
// interval that is not sampled: otherwise the end of that one would be taken for the end
// of a dropped one. Without a stack pointer the ends of intervals cannot be told apart,
// so all are timed.
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

// stop closes the interval that was opened at the same place of a stack, and drops the
// intervals inside it, which can never end. If either event has no stack pointer, stop
// closes the innermost interval.
func (r *row) stop(s *stack, sp uint64, at int64) {
	if begun, ok := r.pop(s, sp); ok {
		r.ended(at - begun.from)
	}
}

// pop removes the interval that stop closes.
func (r *row) pop(s *stack, sp uint64) (begun interval, ok bool) {
	for n := len(s.open); n > 0; n-- {
		top := s.open[n-1]
		switch {
		case sp == 0 || top.sp == 0 || top.sp == sp:
			s.open = s.open[:n-1]
			r.opened(s, -1)
			return top, true
		case top.sp > sp:
			return begun, false // it began before the timer
		}
		r.drop(s)
	}
	return begun, false
}

func (r *row) drop(s *stack) {
	s.open = s.open[:len(s.open)-1]
	r.opened(s, -1)
	r.unfinished++
}

// opened counts an interval of a goroutine that began (1) or ended (-1) on the row's
// thread.
func (r *row) opened(s *stack, n int64) {
	if s != &r.stack {
		r.away += n
	}
}

// ended measures an interval, and reports whether it did: not if its clock was reset meanwhile.
func (r *row) ended(length int64) bool {
	if length < 0 && r.settable {
		r.unfinished++
		return false
	}
	r.measured(uint64(max(length, 0)))
	return true
}

func (r *row) measured(ns uint64) {
	if r.count == 0 || ns < r.min {
		r.min = ns
	}
	r.max = max(r.max, ns)
	r.last = ns
	r.count++
	r.sum = r.sum.Add(program.Uint128{Lo: ns})
	r.squares = r.squares.Add(program.Uint128{Lo: ns}.Times(ns))
	r.histogram.measured(ns)
}

// join adds what a later row has measured; the last value is that row's.
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
	r.sum, r.squares = r.sum.Add(other.sum), r.squares.Add(other.squares)
	r.histogram.join(&other.histogram)
}

// append appends the components of the row, in seconds.
func (r *row) append(list []omis.Value) []omis.Value {
	return append(list,
		omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.count),
		omis.Seconds(r.last), seconds(r.sum), omis.Float(r.squares.Float()/1e18),
		omis.Seconds(r.min), omis.Seconds(r.max), omis.Int(r.unfinished))
}

// exact appends the components of the row in nanoseconds, the sums as pairs of integers.
func (r *row) exact(list []omis.Value) []omis.Value {
	return append(list,
		omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.count), omis.Uint(r.last),
		omis.Uint(r.sum.Hi), omis.Uint(r.sum.Lo), omis.Uint(r.squares.Hi), omis.Uint(r.squares.Lo),
		omis.Uint(r.min), omis.Uint(r.max), omis.Int(r.unfinished))
}

// seconds returns a sum of nanoseconds in seconds.
func seconds(ns program.Uint128) omis.Value {
	if ns.Hi > 0 {
		return omis.Float(ns.Float() / 1e9)
	}
	return omis.Seconds(ns.Lo)
}
