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
	first       uint64 // when the row was begun, or else the slot was claimed
	any         bool   // something was measured since the last reset
	torn        bool   // it was read in the middle of a change
}

// tries bounds how often a row is read at once that changes meanwhile.
const tries = 100

// ones is how often one was added.
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

// sum is what else was added, and whether there was something.
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

// forgetSums has the rows of a slot count from now on.
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

// forgetTimer has the thread of a slot clear its row when it comes by.
func (m *memory) forgetTimer(slot int, c cell) {
	if at := m.rowAt(slot, c); m.inUse(at) {
		m.word(at + rowLimit).Store(0)
	}
}

// forgetGoroutines has open intervals of goroutines count no more.
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
			return reading{} // unused, or reset and the thread has not come by
		case member(rowBegun) == done:
			r.torn = false
			r.any = r.Count != 0 || r.Unfinished != 0 || r.Open != 0 || member(rowPassed) != 0 // a goroutine may come by without a begin or an end
			return r
		}
	}
	return r
}

// mostCounted is more than a thread can count in a month, and so little that sums of the
// rows of all threads stay far from overflowing.
const mostCounted = 1 << 50

// possible bounds what a row of the shared memory says by what a thread can have measured.
// The rest is the business of the process, which can write there whatever it likes. A thread
// that ends intervals which goroutines have begun on other threads has fewer than none open.
func possible(i program.Intervals) program.Intervals {
	bounded := func(n, most int64) int64 { return min(max(n, 0), most) }
	i.Count, i.Unfinished = bounded(i.Count, mostCounted), bounded(i.Unfinished, mostCounted)
	i.Skipped, i.Open = bounded(i.Skipped, mostCounted), max(min(i.Open, mostCounted), -mostCounted)
	return i
}

// mended makes the best of a row whose thread stays in the middle of a change: it
// is in the sum, or not, and in the sum of squares, or not.
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

// leastSquares is the least that a sum of n squares can be: the square of the sum, by
// n, rounded up. Sums beyond 64 bits are left alone.
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

// inNanoseconds turns ticks into nanoseconds. A tick is less than one, so what was true
// of the numbers need not be true of what is left of them: a sum of 5·20.3 is 101, and
// greater than 5·20. It is made true again.
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

// Threads that are read in the middle of a change are waited for, all at the same time.
const (
	pause  = 50 * time.Microsecond
	pauses = 40

	// impatience is how long nobody waits for rows of a process after one was waited for in
	// vain: else a process could have readers of thousands of rows wait for each.
	impatience = 50 * time.Millisecond
)
