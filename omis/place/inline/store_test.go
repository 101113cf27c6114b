//go:build linux && amd64

package inline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// timed counts and times function 1 of a host.
func timed(t *testing.T, h *host, p *inline.Placer) (sums, intervals program.Store) {
	t.Helper()
	sums, intervals = newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreIntervals)
	place(t, p, h.watch(1, atBegin), program.Op{Do: program.OpAdd, Value: 1, Store: sums}, program.Op{Do: program.OpStart, Store: intervals})
	place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStop, Store: intervals})
	return sums, intervals
}

// expect checks the number of threads, and that each has so many calls.
func expect(t *testing.T, sums, intervals program.Store, threads int, calls int64) {
	t.Helper()
	counted, measured := rows(t, sums), rows(t, intervals)
	if len(counted) != threads || len(measured) != threads {
		t.Errorf("%d and %d rows, want %d", len(counted), len(measured), threads)
		return
	}
	for i := range counted {
		if r := counted[i]; r.Value != calls {
			t.Errorf("row %+v, want %d calls", r, calls)
		}
		if r := measured[i]; r.Count != calls || r.Unfinished != 0 || r.Open != 0 || r.Sum.Lo < r.Min*uint64(calls) || r.Last > r.Max || r.Last < r.Min {
			t.Errorf("row %+v, want %d calls", r, calls)
		}
	}
	if n := sums.Lost() + intervals.Lost(); n != 0 {
		t.Errorf("%d lost", n)
	}
}

func TestOneThread(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	sums, intervals := timed(t, h, newPlacer(t, h))
	h.do("call", 1, 100_000)
	expect(t, sums, intervals, 1, 100_000)
	if r := rows(t, sums)[0]; r.TID != h.PID || !r.Alive || r.Started == 0 {
		t.Errorf("row %+v", r)
	}
}

func TestThreadsAtOnce(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	sums, intervals := timed(t, h, newPlacer(t, h))
	h.do("together", 1, 64, 100_000)
	expect(t, sums, intervals, 64, 100_000)
}

// Threads that run one after the other have rows of their own, although they are more than there are slots.
func TestThreadsOneByOne(t *testing.T) {
	h := newHost(t, gigabyte) // for 256 slots
	sums, intervals := timed(t, h, newPlacer(t, h))
	oneByOne(h, sums, program.RowsOfEnded(2))
	expect(t, sums, intervals, program.RowsOfEnded(2), 7)
}

// oneByOne runs threads one after the other, each of which calls seven times.
func oneByOne(h *host, sums program.Store, threads int) {
	for range threads / 100 {
		h.do("onebyone", 1, 100, 7)
		for inline.Taken(sums) > 100 { // wait until other slots are freed
			time.Sleep(time.Millisecond)
		}
	}
}

// Of very many ended threads the last ones have rows of their own; what the others have measured is
// complete.
func TestVeryManyThreadsOneByOne(t *testing.T) {
	h := newHost(t, gigabyte)
	sums, intervals := timed(t, h, newPlacer(t, h))
	const threads = 3000
	oneByOne(h, sums, threads)
	most := program.RowsOfEnded(2)*5/4 + inline.Taken(sums) + 1
	var calls, timed, apart int64
	counted, measured := rows(t, sums), rows(t, intervals)
	for i, r := range counted {
		if calls += r.Value; r.TID != 0 {
			apart++
		}
		if (i == 0) != (r.TID == 0) || i > 0 && r.Value != 7 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for i, r := range measured {
		timed += r.Count
		if n := uint64(r.Count); (i == 0) != (r.TID == 0) || i > 0 && n != 7 || r.Sum.Lo < n*r.Min || r.Sum.Lo > n*r.Max || r.Last < r.Min || r.Last > r.Max || r.Unfinished != 0 || r.Open != 0 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if calls != 7*threads || timed != 7*threads || sums.Lost()+intervals.Lost() != 0 {
		t.Errorf("%d calls, %d timed, want %d; %d and %d lost", calls, timed, 7*threads, sums.Lost(), intervals.Lost())
	}
	// The row that adds up the threads before is one of those that are left.
	if len(counted) > most || len(measured) > most || apart < int64(program.RowsOfEnded(2))-1 {
		t.Errorf("%d and %d rows, %d of threads, want no more than %d", len(counted), len(measured), apart, most)
	}
	if err := sums.Reset(); err != nil || len(rows(t, sums)) != 0 {
		t.Errorf("after a reset (%v) there are %d rows", err, len(rows(t, sums)))
	}
}

// Without a free slot calls count, but not by threads. The number of lost intervals is counted.
func TestTooManyThreads(t *testing.T) {
	h := newHost(t, gigabyte)
	p := newPlacer(t, h)
	sums, intervals := timed(t, h, p)
	many := newStore(t, p, h.ID, program.StoreSums)
	const large = 1 << 40
	place(t, p, h.watch(1, atBody), program.Op{Do: program.OpAdd, Value: 3, Store: many}, program.Op{Do: program.OpAdd, Value: large, Store: many})
	h.do("together", 1, 600, 1000)
	for s, each := range map[program.Store]int64{sums: 1, many: large + 3} {
		var n, crowd int64
		for _, r := range rows(t, s) {
			n += r.Value
			if r.TID == 0 {
				crowd = r.Value
			}
		}
		if n != 600_000*each || crowd == 0 || s.Lost() != 0 {
			t.Errorf("%d counted, %d of them by nobody known, want %d; %d lost", n, crowd, 600_000*each, s.Lost())
		}
		if err := s.Reset(); err != nil || len(rows(t, s)) != 0 {
			t.Errorf("after the reset (%v) there are %d rows", err, len(rows(t, s)))
		}
	}
	var n int64
	for _, r := range rows(t, intervals) {
		n += r.Count
	}
	// An interval may lose its beginning, its end, or both.
	if lost := int64(intervals.Lost()); n > 600_000 || n+lost < 600_000 || n+lost/2 > 600_000+600 {
		t.Errorf("%d timed, %d lost", n, lost)
	}
}

// Signal handlers that interrupt the code, and run it, spoil nothing.
func TestSignals(t *testing.T) {
	for _, other := range []int{0, 1} {
		h := newHost(t, 64*gigabyte)
		p := newPlacer(t, h)
		sums, intervals := timed(t, h, p)
		odd := newStore(t, p, h.ID, program.StoreSums)
		place(t, p, h.watch(1, atBody), program.Op{Do: program.OpAdd, Value: 3, Store: odd})
		var n int64
		if _, err := fmt.Sscan(h.do("storm", 1, 1500, other), &n); err != nil {
			t.Fatal(err)
		}
		if all := rows(t, sums); len(all) != 1 {
			t.Fatalf("rows %+v", all)
		}
		c, m, o := rows(t, sums)[0], rows(t, intervals)[0], rows(t, odd)[0]
		if c.Value != n || o.Value != 3*n || m.Count+m.Unfinished != n || m.Open != 0 || other == 0 && m.Unfinished != 0 {
			t.Errorf("%d calls: counted %d and %d, timed %+v", n, c.Value, o.Value, m.Intervals)
		}
	}
}

// The child of a vfork counts as its parent.
func TestVfork(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	sums, intervals := timed(t, h, newPlacer(t, h))
	h.do("call", 1, 3)
	h.do("vfork", 1)
	expect(t, sums, intervals, 1, 4)
}

func TestReset(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	sums, intervals := timed(t, h, newPlacer(t, h))
	for range 3 {
		h.do("call", 1, 100)
		expect(t, sums, intervals, 1, 100)
		for _, s := range []program.Store{sums, intervals} {
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, sums, intervals, 0, 0)
	}
}

// Stores of all kinds are in nanoseconds also if only one thread has arrived so far.
func TestReadAtOnceOfOneThread(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	sums, intervals := timed(t, h, p)
	stores := []program.Store{sums, intervals, spread(t, h, p, 1)}
	h.do("call", 1, 1000)
	list, ends, err := p.AppendRows(stores, nil, nil)
	if err != nil || len(ends) != len(stores) || len(list) != 3 {
		t.Fatalf("%d rows that end at %v (%v), want one of each store", len(list), ends, err)
	}
	for i, s := range stores {
		got, alone := list[i], rows(t, s)[0]
		// The clock is measured better from time to time, but never changes by a twentieth.
		if got.TID != alone.TID || got.Value != alone.Value || got.Count != alone.Count || math.Abs(float64(got.Sum.Lo)/float64(max(alone.Sum.Lo, 1))-1) > 0.05 && alone.Sum.Lo > 0 {
			t.Errorf("store %d: %+v, alone %+v", i, got, alone)
		}
	}
}

// Many stores that are read together have the same rows as each has by itself. A store without changes, or
// one that is closed, has none.
func TestReadAtOnce(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	sums, intervals := timed(t, h, p)
	odd, unused, closed := newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreIntervals)
	place(t, p, h.watch(1, atBody), program.Op{Do: program.OpAdd, Value: 3, Store: odd})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	h.do("together", 1, 5, 100)
	h.do("call", 1, 7)
	stores := []program.Store{intervals, unused, sums, closed, odd}
	list, ends, err := p.AppendRows(stores, nil, nil)
	if err != nil || len(ends) != len(stores) || len(list) != 18 {
		t.Fatalf("%d rows that end at %v (%v), want 6 each of three stores", len(list), ends, err)
	}
	from := 0
	for i, s := range stores {
		alike := func(a, b program.Row) bool { // nanoseconds may differ, because the clock is measured better from time to time
			return a.TID == b.TID && a.Value == b.Value && a.Count == b.Count
		}
		if alone := rows(t, s); !slices.EqualFunc(list[from:ends[i]], alone, alike) {
			t.Errorf("store %d: %+v, alone %+v", i, list[from:ends[i]], alone)
		}
		from = ends[i]
	}
}
