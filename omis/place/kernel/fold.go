//go:build linux && amd64

package kernel

import (
	"slices"

	"mirador/omis/program"
)

// fold adds up what threads have measured that ended before so many others: it stands in
// the first row that was given back, which names nobody. A thread's row was written down
// before its room was given back, and only then is added up, so that the next monitor
// knows which rooms are free. The page that has the sum counts in place of all former ones.
// The caller holds the pool's lock.
func (s *store) fold() {
	stores := len(s.pool.stores)
	if !program.TooManyEnded(len(s.past), stores) {
		return
	}
	n := len(s.past) - program.RowsOfEnded(stores) + 1
	left := slices.Concat([]dated{sumOf(s.past[:n])}, s.past[n:])
	if s.rewrite(left) == nil { // else it is written as before, and the next time it may succeed
		s.past = left
	}
}

// sumOf is what rows tell together. It comes before all others.
func sumOf(rows []dated) (sum dated) {
	for i := range rows {
		sum.Row = sum.Row.Join(rows[i].Row)
		sum.buckets = sum.buckets.Join(rows[i].buckets)
	}
	return sum
}

// imageOf is the contrary of decode.
func (s *store) imageOf(r *dated) (m image) {
	set := func(member int, v uint64) { m[member/8] = v }
	set(rowEpoch, s.word(cellEpoch))
	set(rowFirst, r.first)
	set(rowOwner, uint64(s.cell)<<32|uint64(uint32(r.TID)))
	set(rowStarted, r.Started*nsPerTick)
	if !s.pool.form.kind.HasIntervals() {
		set(rowSum, uint64(r.Value))
		return m
	}
	set(rowCount, uint64(r.Count))
	set(rowUnfinished, uint64(r.Unfinished))
	set(rowLast, r.Last)
	set(rowMin, r.Min)
	set(rowMax, r.Max)
	set(rowTotal, r.Sum.Lo)
	set(rowTotal+8, r.Sum.Hi)
	set(rowSquares, r.Squares.Lo)
	set(rowSquares+8, r.Squares.Hi)
	set(rowDepth, uint64(r.Open))
	set(rowSkipped, uint64(r.Skipped))
	return m
}
