//go:build linux && amd64

package inline_test

import (
	"fmt"
	"testing"
	"time"

	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// spread times function 1 of a host, with a histogram.
func spread(t *testing.T, h *host, p *inline.Placer, oneIn int64) program.Store {
	t.Helper()
	s := newStore(t, p, h.ID, program.StoreHistograms)
	place(t, p, h.watch(1, atBegin), program.Op{Do: program.OpStart, OneIn: oneIn, Store: s})
	place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStop, OneIn: oneIn, Store: s})
	return s
}

// histograms reads a store, and checks that all intervals are in buckets between the shortest and the
// longest interval of their row.
func histograms(t *testing.T, s program.Store) []program.Histogram {
	t.Helper()
	list, err := s.(program.HistogramStore).Histograms()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if n := r.Buckets.Count(); n != uint64(r.Count) {
			t.Errorf("%d intervals of %d, %d in buckets", r.Count, r.TID, n)
		}
		if n := len(r.Buckets); n > 0 && (r.Min > r.Buckets[0].Most || r.Max < r.Buckets[n-1].Least) {
			t.Errorf("from %d to %d, and buckets %v", r.Min, r.Max, r.Buckets)
		}
	}
	return list
}

func expectSpread(t *testing.T, s program.Store, threads int, each int64) {
	t.Helper()
	list := histograms(t, s)
	if len(list) != threads {
		t.Fatalf("%d rows, want %d", len(list), threads)
	}
	for _, r := range list {
		if r.Count != each || r.Unfinished != 0 || r.Open != 0 {
			t.Errorf("row %+v, want %d intervals", r, each)
		}
	}
}

func TestHistogram(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	s, some := spread(t, h, p, 1), spread(t, h, p, 10)
	expectSpread(t, s, 0, 0)
	h.do("together", 1, 64, 10_000)
	expectSpread(t, s, 64, 10_000)
	expectSpread(t, some, 64, 1000)
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	expectSpread(t, s, 0, 0)
	h.do("call", 1, 300)
	expectSpread(t, s, 1, 300)
	if list := histograms(t, some); len(list) != 65 {
		t.Errorf("%d rows, want 65", len(list))
	}
}

// Histograms take eleven rooms for each thread, in consecutive groups.
func TestManyHistograms(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	var all []program.Store
	for range 30 {
		all = append(all, spread(t, h, p, 1))
	}
	h.do("call", 1, 100)
	for _, s := range all {
		expectSpread(t, s, 1, 100)
	}
}

// For every length of a tick, the shortest and the longest interval are in the first and the last bucket.
func TestHistogramIsRounded(t *testing.T) {
	for tick := uint64(1) << 38; tick < 1<<41; tick += 1 << 36 / 3 {
		for ticks := range uint64(300) {
			h := inline.Same(40, ticks, tick)
			if first, last := h.Buckets[0], h.Buckets[len(h.Buckets)-1]; first.Least > h.Min || first.Most < h.Min || last.Least > h.Max || last.Most < h.Max {
				t.Fatalf("%d ticks: from %d to %d, and buckets %v", ticks, h.Min, h.Max, h.Buckets)
			}
		}
	}
}

// What ended threads have measured is kept completely.
func TestHistogramOneByOne(t *testing.T) {
	h := newHost(t, gigabyte)
	s := spread(t, h, newPlacer(t, h), 1)
	for range 5 {
		h.do("onebyone", 1, 60, 10)
		for inline.Taken(s) > 100 { // wait until other slots are freed
			time.Sleep(time.Millisecond)
		}
	}
	expectSpread(t, s, 300, 10)
}

// Signal handlers that interrupt the code, and run it, lose no interval in the buckets.
func TestHistogramSignals(t *testing.T) {
	for _, other := range []int{0, 1} {
		h := newHost(t, 64*gigabyte)
		s := spread(t, h, newPlacer(t, h), 1)
		var n int64
		if _, err := fmt.Sscan(h.do("storm", 1, 300, other), &n); err != nil {
			t.Fatal(err)
		}
		if r := histograms(t, s)[0]; r.Count+r.Unfinished != n || r.Open != 0 {
			t.Errorf("%d calls: %+v", n, r.Intervals)
		}
	}
}

// While threads run, buckets have no more intervals than rows.
func TestHistogramIsReadMeanwhile(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	s := spread(t, h, newPlacer(t, h), 1)
	h.Tell("together %d 4 100000", functionSize)
	done := make(chan string)
	go func() { done <- h.Line() }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		list, err := s.(program.HistogramStore).Histograms()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Buckets.Count() > uint64(r.Count) {
				t.Errorf("%d intervals, %d in buckets", r.Count, r.Buckets.Count())
			}
		}
	}
	expectSpread(t, s, 4, 100_000)
}

// A thread may lose its processor for long in the middle of counting.
func TestHistogramIsReadInBetween(t *testing.T) {
	h := newHost(t, gigabyte)
	s := spread(t, h, newPlacer(t, h), 1)
	h.do("call", 1, 100)
	expectSpread(t, s, 1, 100)
	for range 2 { // the second time in a signal handler
		inline.Interrupt(s)
		expectSpread(t, s, 1, 100)
	}
}

// A histogram that is kept has what was counted under all monitors and without one, also by ended threads.
func TestHistogramIsKept(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte), kind: program.StoreHistograms}
	e.begin(t)
	e.placeAll(t)
	var calls uint64
	for n := range 3 {
		e.h.do("call", 1, 1000)
		e.h.do("onebyone", 1, 40, 3)
		if n == 1 {
			time.Sleep(700 * time.Millisecond) // rows are moved away
		}
		calls += 1120
		e.begin(t)
		e.h.do("call", 1, 10)
		calls += 10
		e.placeAll(t)
		if orphans, err := e.p.Settle(); err != nil || len(orphans) > 0 {
			t.Errorf("orphans %v, %v", orphans, err)
		}
		list := histograms(t, e.intervals)
		var all program.Distribution
		for _, r := range list {
			all = all.Join(r.Buckets)
		}
		if len(list) != 1+40*(n+1) || all.Count() != calls {
			t.Errorf("%d threads timed %d, want %d and %d", len(list), all.Count(), 1+40*(n+1), calls)
		}
	}
	e.end(t)
}

// A program that does more than to count and to measure time has another kind of place, with costs of its
// own. Beginning an interval costs the same for all timers.
func TestKindsOfMore(t *testing.T) {
	h := newHost(t, gigabyte)
	p := newPlacer(t, h)
	intervals, trail := newStore(t, p, h.ID, program.StoreHistograms), newStore(t, p, h.ID, program.StoreTraces)
	begin, end := program.Op{Do: program.OpStart, Histogram: true, Store: intervals}, program.Op{Do: program.OpStop, Histogram: true, Store: intervals}
	record := program.Op{Do: program.OpTrace, Room: 10, Store: trail}
	for want, steps := range map[string]program.Program{
		"entry, ordered": {begin}, "entry, ordered, histogram": {end}, "entry, traced": {record}, "entry, traced, timed, ordered": {begin, record},
	} {
		if v := place(t, p, h.watch(1, atBegin), steps...).Verdict(); v.Kind != want {
			t.Errorf("%s, want %s", v.Kind, want)
		}
	}
}
