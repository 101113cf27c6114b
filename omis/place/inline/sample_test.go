//go:build linux && amd64

package inline_test

import (
	"fmt"
	"testing"
	"time"

	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// sampled counts function 1 of a host and times one in oneIn of its calls.
func sampled(t *testing.T, h *host, p *inline.Placer, oneIn int64) (sums, intervals program.Store) {
	t.Helper()
	sums, intervals = newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreIntervals)
	one := program.Op{Do: program.OpAdd, Value: 1, Store: sums}
	place(t, p, h.watch(1, atBegin), one, program.Op{Do: program.OpStart, OneIn: oneIn, Store: intervals})
	place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStop, OneIn: oneIn, Store: intervals})
	return sums, intervals
}

// expectSampled checks the number of threads, and how many intervals each has begun and timed.
func expectSampled(t *testing.T, intervals program.Store, threads int, begun, timed int64) {
	t.Helper()
	list := rows(t, intervals)
	if len(list) != threads {
		t.Fatalf("%d rows, want %d", len(list), threads)
	}
	for _, r := range list {
		if r.Count != timed || r.Count+r.Skipped != begun || r.Unfinished != 0 || r.Open != 0 || r.Sum.Lo < r.Min*uint64(timed) || r.Sum.Lo > r.Max*uint64(timed) {
			t.Errorf("row %+v, want %d timed of %d", r, timed, begun)
		}
	}
}

func TestSampled(t *testing.T) {
	for _, oneIn := range []int64{2, 100, 1_000_000} {
		h := newHost(t, 64*gigabyte)
		_, intervals := sampled(t, h, newPlacer(t, h), oneIn)
		h.do("call", 1, oneIn)
		expectSampled(t, intervals, 1, oneIn, 1)
		h.do("call", 1, oneIn)
		expectSampled(t, intervals, 1, 2*oneIn, 2)
	}
}

func TestSampledThreads(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	_, intervals := sampled(t, h, newPlacer(t, h), 10)
	h.do("together", 1, 64, 10_000)
	expectSampled(t, intervals, 64, 10_000, 1000)
	if err := intervals.Reset(); err != nil {
		t.Fatal(err)
	}
	expectSampled(t, intervals, 0, 0, 0)
	h.do("call", 1, 20)
	expectSampled(t, intervals, 1, 20, 2)
	if err := intervals.Reset(); err != nil {
		t.Fatal(err)
	}
	h.do("call", 1, 20)
	expectSampled(t, intervals, 1, 20, 2)
}

// What ended threads have measured is kept completely.
func TestSampledThreadsOneByOne(t *testing.T) {
	h := newHost(t, gigabyte)
	_, intervals := sampled(t, h, newPlacer(t, h), 5)
	for range 20 {
		h.do("onebyone", 1, 50, 10)
		for inline.Taken(intervals) > 100 { // wait until other slots are freed
			time.Sleep(time.Millisecond)
		}
	}
	expectSampled(t, intervals, 1000, 10, 2)
}

// One call of each n is timed, and each of them is chosen sometimes.
func TestLots(t *testing.T) {
	const oneIn, turns = 4, 200
	h := newHost(t, 64*gigabyte)
	_, intervals := sampled(t, h, newPlacer(t, h), oneIn)
	var places [oneIn]int
	var timed int64
	for turn := range turns {
		for i := range places {
			h.do("call", 1, 1)
			if n := rows(t, intervals)[0].Count; n != timed {
				timed = n
				places[i]++
			}
		}
		if timed != int64(turn+1) {
			t.Fatalf("%d were timed in %d turns", timed, turn+1)
		}
	}
	for i, n := range places {
		if n == 0 {
			t.Errorf("number %d of %d was never timed: %v", i, oneIn, places)
		}
	}
}

// Signal handlers that interrupt the code, and run it, do not make counts wrong, and do not end intervals
// of the interrupted code.
func TestSampledSignals(t *testing.T) {
	for _, other := range []int{0, 1} {
		h := newHost(t, 64*gigabyte)
		sums, intervals := sampled(t, h, newPlacer(t, h), 3)
		var n int64
		if _, err := fmt.Sscan(h.do("storm", 1, 700, other), &n); err != nil {
			t.Fatal(err)
		}
		c, m := rows(t, sums)[0], rows(t, intervals)[0]
		if c.Value != n || m.Count+m.Unfinished+m.Skipped != n || m.Open != 0 || other == 0 && m.Unfinished != 0 {
			t.Errorf("%d calls: counted %d, timed %+v", n, c.Value, m.Intervals)
		}
		if m.Count < n/4 || m.Count > n/2 {
			t.Errorf("%d of %d calls were timed, want a third", m.Count, n)
		}
	}
}

// If another timer at the same place times all calls, both are right.
func TestSampledBesideOthers(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	some, all := newStore(t, p, h.ID, program.StoreIntervals), newStore(t, p, h.ID, program.StoreIntervals)
	for where, do := range map[int]program.Operation{atBegin: program.OpStart, atEnd: program.OpStop} {
		place(t, p, h.watch(1, where), program.Op{Do: do, OneIn: 10, Store: some}, program.Op{Do: do, Store: all})
	}
	h.do("call", 1, 1000)
	expectSampled(t, some, 1, 1000, 100)
	expectSampled(t, all, 1, 1000, 1000)
}

// If only some intervals are timed, the next monitor has every count, and continues in the middle of n
// intervals. A program with another ratio is not adopted.
func TestSampledIsKept(t *testing.T) {
	const oneIn = 10
	e := &keptHost{h: newHost(t, gigabyte), oneIn: oneIn}
	e.begin(t)
	e.placeAll(t)
	for n := range int64(4) {
		e.h.do("call", 1, oneIn/2)
		e.h.do("onebyone", 1, 20, 2*oneIn)
		e.die(t)
		e.h.do("call", 1, oneIn)
		e.h.do("onebyone", 1, 20, oneIn)
		stood := e.h.standing
		e.begin(t)
		e.placeAll(t)
		e.h.do("call", 1, oneIn/2)
		if e.h.standing != stood {
			t.Errorf("%d patches were put in place of those that stood", e.h.standing-stood)
		}
		var timed, begun int64
		for _, r := range rows(t, e.intervals) {
			timed, begun = timed+r.Count, begun+r.Count+r.Skipped
			if r.Unfinished != 0 || r.Open != 0 || r.Sum.Lo < r.Min*uint64(r.Count) || r.Sum.Lo > r.Max*uint64(r.Count) {
				t.Errorf("row %+v", r)
			}
		}
		if turns := (n + 1) * (2 + 20*2 + 20); timed != turns || begun != turns*oneIn {
			t.Errorf("%d of %d were timed, want %d of %d", timed, begun, turns, turns*oneIn)
		}
	}
	stood := e.h.standing
	e.oneIn = 2 * oneIn
	e.begin(t)
	e.placeAll(t)
	if orphans, err := e.p.Settle(); err != nil || len(orphans) != len(e.placings) || e.h.standing != stood+len(e.placings) {
		t.Errorf("%d patches were put beside %d: orphans %v, %v", e.h.standing-stood, stood, orphans, err)
	}
	e.end(t)
}
