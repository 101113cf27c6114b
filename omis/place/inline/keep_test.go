//go:build linux && amd64

package inline_test

import (
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// keptHost is what a monitor keeps in a host: function 1, counted and timed.
type keptHost struct {
	h               *host
	p               *inline.Placer
	sums, intervals program.Store
	oneIn           int64             // one in so many intervals is timed; 0: all
	kind            program.StoreKind // of intervals; 0: StoreIntervals
	placings        []program.Placing
	placed          []program.Placed
}

func keep(t *testing.T, p *inline.Placer, id omis.ProcID, kind program.StoreKind, key string) program.Store {
	t.Helper()
	s, err := p.Keep(id, kind, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// placeAll places the programs.
func (e *keptHost) placeAll(t *testing.T) {
	t.Helper()
	watch := func(where int) node.Watch {
		w := e.h.watch(1, where)
		w.Event = node.EventReachedAddr
		return w
	}
	e.placings = []program.Placing{
		{Watch: watch(atBegin), Program: program.Program{{Do: program.OpAdd, Value: 1, Store: e.sums}, {Do: program.OpAdd, Value: 10, Store: e.sums}, {Do: program.OpStart, OneIn: e.oneIn, Store: e.intervals}}},
		{Watch: watch(atEnd), Program: program.Program{{Do: program.OpStop, OneIn: e.oneIn, Store: e.intervals}}},
	}
	var errs []error
	e.placed, errs = e.p.Place(e.placings)
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		e.placed[i].SetActive(true)
	}
}

// begin starts a new monitor, after the death of the former one if there was one.
func (e *keptHost) begin(t *testing.T) {
	t.Helper()
	if e.p != nil {
		e.die(t)
	}
	e.p = inline.New(e.h)
	e.sums, e.intervals = keep(t, e.p, e.h.ID, program.StoreSums, "calls"), keep(t, e.p, e.h.ID, max(e.kind, program.StoreIntervals), "times, under a key that is longer than what the directory has room for")
}

// die ends the monitor.
func (e *keptHost) die(t *testing.T) {
	t.Helper()
	if err := e.p.Close(); err != nil {
		t.Fatal(err)
	}
	e.p, e.h.orphaned = nil, true
}

// end removes everything.
func (e *keptHost) end(t *testing.T) {
	t.Helper()
	if err := e.p.Remove(e.placed); err != nil {
		t.Error(err)
	}
	for _, s := range []program.Store{e.sums, e.intervals} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := e.p.Close(); err != nil {
		t.Error(err)
	}
}

// total adds up the rows.
func (e *keptHost) total(t *testing.T) (threads int, calls, intervals int64) {
	t.Helper()
	for _, r := range rows(t, e.sums) {
		calls += r.Value
		threads++
	}
	for _, r := range rows(t, e.intervals) {
		intervals += r.Count
	}
	return threads, calls, intervals
}

// What is kept continues without a monitor, and the next monitor adopts it, with threads that have ended
// meanwhile, and with those whose rows were moved away before.
func TestKept(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	e.begin(t)
	e.placeAll(t)
	var calls int64
	threads := 1
	for n := range int64(4) {
		e.h.do("call", 1, 1000)
		e.h.do("onebyone", 1, 100, 3)
		if n == 1 {
			time.Sleep(700 * time.Millisecond) // rows are moved away
		}
		calls, threads = calls+1300, threads+100
		stood := e.h.standing
		if n%2 == 0 {
			rows(t, e.sums)
		}
		e.begin(t)
		e.placeAll(t)
		if e.h.standing != stood {
			t.Errorf("%d patches were put in place of those that stood", e.h.standing-stood)
		}
		if orphans, err := e.p.Settle(); err != nil || len(orphans) > 0 {
			t.Errorf("orphans %v, %v", orphans, err)
		}
		if who, sum, timed := e.total(t); who != threads || sum != 11*calls || timed != calls {
			t.Errorf("%d threads counted %d and timed %d, want %d, %d and %d", who, sum, timed, threads, 11*calls, calls)
		}
	}
	if v := e.placed[0].Verdict(); v.Kind != "entry, ordered" {
		t.Errorf("the verdict is %+v", v)
	}
	e.end(t)
}

// Without a monitor no slots are freed. Threads that find none are counted together, and the next monitor
// reports them as this one would.
func TestCrowdIsKept(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)} // for 256 slots
	e.begin(t)
	e.placeAll(t)
	e.die(t)
	e.h.do("onebyone", 1, 600, 3)
	for range 2 { // the second monitor adopts what the first one has adopted
		e.begin(t)
		if _, calls, intervals := e.total(t); calls != 11*1800 || e.sums.Lost() != 0 || intervals == 0 || intervals+int64(e.intervals.Lost())/2 != 1800 {
			t.Errorf("%d calls (%d lost), %d intervals (%d lost)", calls, e.sums.Lost(), intervals, e.intervals.Lost())
		}
		e.die(t)
	}
	e.begin(t)
	e.placeAll(t)
	e.end(t)
}

// dies makes the monitor do something that it does not survive.
func (e *keptHost) dies(t *testing.T, of func()) {
	t.Helper()
	defer func() {
		if why := recover(); why != death {
			t.Errorf("the monitor ended of %v", why)
		}
	}()
	e.h.deadly = true
	of()
}

// A monitor that is killed while it installs or removes code beside kept programs leaves them as they were.
func TestKilledWhileItChanges(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	e.begin(t)
	e.placeAll(t)
	var calls int64
	for _, placedBefore := range []bool{false, true, false, true} {
		other := newStoreOf(t, e.p, e.h.ID)
		beside := []program.Placing{{Watch: e.placings[0].Watch, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: other}}}}
		if placedBefore {
			made, errs := e.p.Place(beside)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			e.dies(t, func() { e.p.Remove(made) })
		} else {
			e.dies(t, func() { e.p.Place(beside) })
		}
		stood := e.h.standing
		e.begin(t)
		e.placeAll(t)
		if e.h.standing != stood {
			t.Errorf("%d patches were put in place of those that stood", e.h.standing-stood)
		}
		if orphans, err := e.p.Settle(); err != nil {
			t.Errorf("orphans %v, %v", orphans, err)
		}
		if points := len(e.h.Left()); points != len(e.placings) {
			t.Errorf("%d patches stand", points)
		}
		e.h.do("call", 1, 1000)
		calls += 1000
		if _, sum, timed := e.total(t); sum != 11*calls || timed != calls {
			t.Errorf("counted %d and timed %d of %d", sum, timed, calls)
		}
	}
	e.end(t)
}

// What no request adopts is removed, and its memory is zero again.
func TestSettle(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	e.begin(t)
	e.placeAll(t)
	e.h.do("call", 1, 1000)
	other := newStoreOf(t, e.p, e.h.ID)
	if _, errs := e.p.Place([]program.Placing{{Watch: e.placings[0].Watch, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: other}}}}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if err := e.p.Close(); err != nil {
		t.Fatal(err)
	}
	e.h.orphaned = true
	e.p = inline.New(e.h)
	if s, err := e.p.Recall(e.h.ID, program.StoreSums, "something else"); s != nil || err != nil {
		t.Errorf("recalled %v, %v", s, err)
	}
	e.sums = keep(t, e.p, e.h.ID, program.StoreSums, "calls")
	orphans, err := e.p.Settle()
	if err != nil || len(orphans) != 4 {
		t.Errorf("orphans %v, %v", orphans, err)
	}
	e.h.do("call", 1, 1000)
	if r := rows(t, e.sums); len(r) != 1 || r[0].Value != 11_000 {
		t.Errorf("rows %+v", r)
	}
	e.intervals = keep(t, e.p, e.h.ID, program.StoreIntervals, "new")
	e.placeAll(t)
	e.h.do("call", 1, 5)
	if _, calls, intervals := e.total(t); calls != 11_055 || intervals != 5 {
		t.Errorf("counted %d, timed %d", calls, intervals)
	}
	e.end(t)
}

// After Settle, leftovers that are found in another process are removed at once.
func TestSettleFirst(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	e.begin(t)
	e.placeAll(t)
	if err := e.p.Close(); err != nil {
		t.Fatal(err)
	}
	e.h.orphaned = true
	e.p = inline.New(e.h)
	if orphans, err := e.p.Settle(); err != nil || len(orphans) != 0 {
		t.Errorf("orphans %v, %v", orphans, err)
	}
	if s, err := e.p.Recall(e.h.ID, program.StoreSums, "calls"); s != nil || err != nil {
		t.Errorf("recalled %v, %v", s, err)
	}
	e.sums, e.intervals = keep(t, e.p, e.h.ID, program.StoreSums, "calls"), keep(t, e.p, e.h.ID, program.StoreIntervals, "times")
	e.placeAll(t)
	e.h.do("call", 1, 5)
	if _, calls, intervals := e.total(t); calls != 55 || intervals != 5 {
		t.Errorf("counted %d, timed %d", calls, intervals)
	}
	e.end(t)
}

func newStoreOf(t *testing.T, p *inline.Placer, id omis.ProcID) program.Store {
	t.Helper()
	s, err := p.NewStore(id, program.StoreSums)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Threads on different processors may take slots at the same tick.
func TestKeepCoincidence(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte), kind: program.StoreHistograms}
	e.begin(t)
	e.placeAll(t)
	const threads, calls = 6, 100
	if err := inline.Coincide(e.intervals, func() { e.h.do("together", 1, threads, calls) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		expectSpread(t, e.intervals, threads, calls)
		counted := rows(t, e.sums)
		for _, r := range counted {
			if len(counted) != threads || r.Value != 11*calls {
				t.Errorf("%d threads, and %d of one; want %d, %d of each", len(counted), r.Value, threads, 11*calls)
			}
		}
		e.begin(t)
		e.placeAll(t)
	}
	e.end(t)
}
