//go:build linux && amd64

package inline

import (
	"math/bits"
	"time"

	"mirador/omis/program"
)

// reading is a row as it was read.
type reading struct {
	program.Row        // without its thread; intervals in ticks
	first       uint64 // when the row was begun, or when the slot was taken
	any         bool   // something was measured since the last reset
	torn        bool   // it was read in the middle of a change
}

// tries is how often a row that changes is read again at once.
const tries = 100

// ones returns how often 1 was added.
func (m *memory) ones(slot int, c cell) uint64 {
	at := m.rowAt(slot, c)
	if !m.inUse(at) {
		return 0
	}
	n := m.word(at).Load()
	if m.wasReset(at + former) {
		n -= m.word(at + former).Load()
	}
	return n
}

// sum returns the sum of what else was added; any reports whether anything was.
func (m *memory) sum(slot int, c cell) (v uint64, any, torn bool) {
	at := m.rowAt(slot, c)
	if !m.inUse(at) {
		return 0, false, false
	}
	v, n, torn := m.wholeSum(at)
	if m.wasReset(at + former) {
		v -= m.word(at + former + sumValue).Load()
		n -= m.word(at + former + sumDone).Load()
	}
	return v, n != 0, torn
}

func (m *memory) wholeSum(at int) (v, n uint64, torn bool) {
	for range tries {
		n = m.word(at + sumDone).Load()
		v = m.word(at + sumValue).Load()
		if m.word(at+sumBegun).Load() == n {
			return v, n, false
		}
	}
	return v, n, true
}

// forgetSums resets the sums of a slot.
func (m *memory) forgetSums(slot int, c cell) {
	at := m.rowAt(slot, c)
	if !m.inUse(at) {
		return
	}
	m.room(at).used |= pageOf(at + former)
	if c.kind == cellOnes {
		m.word(at + former).Store(m.word(at).Load())
		return
	}
	v, n, _ := m.wholeSum(at)
	m.word(at + former + sumValue).Store(v)
	m.word(at + former + sumDone).Store(n)
}

// forgetTimer marks the row of a slot, which its thread then clears at its next hit.
func (m *memory) forgetTimer(slot int, c cell) {
	if at := m.rowAt(slot, c); m.inUse(at) {
		m.word(at + rowLimit).Store(0)
	}
}

// forgetGoroutines invalidates the open intervals of goroutines.
func (m *memory) forgetGoroutines(c cell) { m.word(entryAt(c.entry) + entryReset).Add(1) }

// timer reads the row of a timer.
func (m *memory) timer(slot int, c cell) (r reading) {
	at := m.rowAt(slot, c)
	if !m.inUse(at) {
		return r
	}
	member := func(i int) uint64 { return m.word(at + i).Load() }
	opened := func() int64 {
		n := int64(member(rowDepth)) / int64(c.kind.depth())
		if away := m.away(slot, c); m.inUse(away) {
			n += int64(m.word(away).Load() - noneAway)
		}
		return n
	}
	for range tries {
		r = reading{any: member(rowLimit) != 0, first: member(rowFirst), torn: true}
		done := member(rowDone)
		r.Count, r.Unfinished, r.Open = int64(done), int64(member(rowUnfinished)), opened()
		r.Skipped = max(int64(member(rowPassed))-r.Count-r.Unfinished-r.Open, 0)
		r.Last, r.Min, r.Max = member(rowLast), member(rowLeast), member(rowMost)
		r.Sum = program.Uint128{Lo: member(rowTotal)}
		r.Squares = program.Uint128{Lo: member(rowSquares), Hi: member(rowSquares + 8)}
		r.Intervals = possible(r.Intervals)
		switch {
		case !r.any || member(rowLimit) == 0:
			return reading{} // not used, or reset and not cleared yet
		case member(rowBegun) == done:
			r.torn = false
			r.any = r.Count != 0 || r.Unfinished != 0 || r.Open != 0 || member(rowPassed) != 0 // a goroutine may have had its only begin or end elsewhere
			return r
		}
	}
	return r
}

// mostCounted is more than a thread can count in a month, and so small that sums over all threads cannot
// overflow.
const mostCounted = 1 << 50

// possible limits the numbers of a row to what a thread can have measured: the process can write anything
// there. The number of open intervals may be negative, if goroutines began intervals on other threads that
// ended on this one.
func possible(i program.Intervals) program.Intervals {
	bounded := func(n, most int64) int64 { return min(max(n, 0), most) }
	i.Count, i.Unfinished = bounded(i.Count, mostCounted), bounded(i.Unfinished, mostCounted)
	i.Skipped, i.Open = bounded(i.Skipped, mostCounted), max(min(i.Open, mostCounted), -mostCounted)
	return i
}

// mended makes a row consistent whose thread stays in the middle of a change: the last interval may be in
// the sum or the sum of squares only.
func (r reading) mended() reading {
	if r.Count == 0 {
		r.Last, r.Min, r.Max, r.Sum, r.Squares = 0, 0, 0, program.Uint128{}, program.Uint128{}
		return r
	}
	if least := leastSquares(r.Sum, uint64(r.Count)); r.Squares.Less(least) {
		r.Squares = least
	}
	return r
}

// leastSquares returns the least sum of squares of n numbers with a given sum: the square of the sum
// divided by n, rounded up. It returns 0 for sums of more than 64 bits.
func leastSquares(sum program.Uint128, n uint64) program.Uint128 {
	if sum.Hi != 0 {
		return program.Uint128{}
	}
	hi, lo := bits.Mul64(sum.Lo, sum.Lo)
	top, rest := bits.Div64(0, hi, n)
	low, rest := bits.Div64(rest, lo, n)
	least := program.Uint128{Hi: top, Lo: low}
	if rest != 0 {
		least = least.Add(program.Uint128{Lo: 1})
	}
	return least
}

// inNanoseconds converts ticks to nanoseconds. A tick is less than a nanosecond, so rounding may make the
// numbers inconsistent: a sum of 5·20.3 becomes 101, which is more than 5·20. inNanoseconds makes them
// consistent again.
func inNanoseconds(i program.Intervals, tick uint64) program.Intervals {
	if i.Count == 0 {
		i.Min = 0
		return i
	}
	n := uint64(i.Count)
	i.Last, i.Min, i.Max = nanoseconds(i.Last, tick), nanoseconds(i.Min, tick), nanoseconds(i.Max, tick)
	i.Sum, i.Squares = scale(i.Sum, tick), scale(scale(i.Squares, tick), tick)
	if i.Sum.Hi == 0 {
		i.Max = max(i.Max, (i.Sum.Lo+n-1)/n)
	}
	if most := i.Sum.Times(i.Max); most.Less(i.Squares) {
		i.Squares = most
	}
	if least := leastSquares(i.Sum, n); i.Squares.Less(least) {
		i.Squares = least
	}
	return i
}

// Rows that are being changed are read again after a pause, all of them together.
const (
	pause  = 50 * time.Microsecond
	pauses = 40

	// impatience is a time after a reader has waited for rows of a process in vain. During this time nobody
	// waits for rows of the process. Otherwise a reader of thousands of rows could have to wait for each row.
	impatience = 50 * time.Millisecond
)
