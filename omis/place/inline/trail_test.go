//go:build linux && amd64

package inline_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// The marks of the records for a function's beginning and end. They alternate in each thread.
const (
	begun = 1
	ended = -2
)

// traced makes function 1 of a host append a record when it begins and when it ends.
func traced(t *testing.T, h *host, p *inline.Placer, room int64) program.Trail {
	t.Helper()
	s := newStore(t, p, h.ID, program.StoreTraces)
	place(t, p, h.watch(1, atBegin), program.Op{Do: program.OpTrace, Mark: begun, Value: 5, Room: room, Store: s})
	place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpTrace, Mark: ended, Value: -1 << 40, Room: room, Store: s})
	return s.(program.Trail)
}

// inTurn is what was read of a trace: how many records each thread has.
type inTurn struct {
	records map[int]int
	last    map[int]program.Record
	lost    uint64
	all     int
}

func newInTurn() *inTurn {
	return &inTurn{records: make(map[int]int), last: make(map[int]program.Record)}
}

// take takes records, and checks that those of a thread alternate. If some are lost, it does not check the
// marks.
func (in *inTurn) take(t *testing.T, s program.Trail) {
	t.Helper()
	list, lost, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	in.lost += lost
	for _, r := range list {
		last, known := in.last[r.TID]
		switch {
		case r.Mark == begun && r.Value != 5, r.Mark == ended && r.Value != -1<<40, r.Mark != begun && r.Mark != ended:
			t.Fatalf("record %+v", r)
		case known && last.Time > r.Time:
			t.Fatalf("record %+v comes after %+v", r, last)
		case known && last.Mark == r.Mark && in.lost == 0:
			t.Fatalf("record %+v comes after one of the same mark", r)
		}
		in.last[r.TID] = r
		in.records[r.TID]++
		in.all++
	}
}

// expectTraced takes the records, and checks the number of threads and records of each.
func expectTraced(t *testing.T, s program.Trail, threads, records int, lost uint64) {
	t.Helper()
	in := newInTurn()
	in.take(t, s)
	if len(in.records) != threads || in.lost != lost {
		t.Errorf("records of %d threads and %d lost, want %d and %d", len(in.records), in.lost, threads, lost)
	}
	for tid, n := range in.records {
		if n != records {
			t.Errorf("%d records of thread %d, want %d", n, tid, records)
		}
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

// All calls have records, each is taken once, and has the right time.
func TestTrail(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	s := traced(t, h, newPlacer(t, h), 1)
	expectTraced(t, s, 0, 0, 0)
	before := monotonic(t)
	h.do("call", 1, 1000)
	after := monotonic(t)
	list, lost, err := s.Take()
	if err != nil || len(list) != 2000 || lost != 0 {
		t.Fatalf("%d records, %d lost (%v), want 2000", len(list), lost, err)
	}
	const uncertain = int64(time.Millisecond)
	if first, last := list[0], list[1999]; first.Time < before-uncertain || last.Time > after+uncertain || first.TID != h.PID || !first.Alive {
		t.Errorf("from %+v to %+v, want some between %d and %d", first, last, before, after)
	}
	expectTraced(t, s, 0, 0, 0)
	h.do("call", 1, 3)
	expectTraced(t, s, 1, 6, 0)
	h.do("call", 1, 3)
	if err := s.Reset(); err != nil || len(rows(t, s)) != 0 {
		t.Errorf("after the reset (%v) there are %+v", err, rows(t, s))
	}
	expectTraced(t, s, 0, 0, 0)
}

// If there are more records than room, the newest are kept, and the number of lost ones is reported.
func TestFullTrail(t *testing.T) {
	for room, kept := range map[int64]int{1: 2048, 2048: 2048, 2049: 4096, 65536: 65536} {
		h := newHost(t, 64*gigabyte)
		s := traced(t, h, newPlacer(t, h), room)
		h.do("call", 1, 50_000)
		expectTraced(t, s, 1, kept, uint64(100_000-kept))
		h.do("call", 1, kept/2)
		expectTraced(t, s, 1, kept, 0)
	}
}

// Four threads append 40,000 records each, and none is lost; nor is one of many threads that run one after
// the other, more than there are slots.
func TestTrailOfThreads(t *testing.T) {
	h := newHost(t, gigabyte)
	s := traced(t, h, newPlacer(t, h), 65536)
	h.do("together", 1, 4, 20_000)
	expectTraced(t, s, 4, 40_000, 0)
	for range 10 {
		h.do("onebyone", 1, 100, 7)
		for inline.Taken(s) > 100 { // wait until other slots are freed
			time.Sleep(time.Millisecond)
		}
	}
	expectTraced(t, s, 1000, 14, 0)
}

// If records are never read, memory is bounded: of ended threads the newest records are kept, and the
// others are lost.
func TestUnreadTrail(t *testing.T) {
	h := newHost(t, gigabyte)
	s := traced(t, h, newPlacer(t, h), 65536)
	const threads, calls = 36, 20_000
	h.do("onebyone", 1, threads, calls)
	for inline.Taken(s) > 0 {
		time.Sleep(time.Millisecond)
	}
	list, lost, err := s.Take()
	if all := len(list) + int(lost); err != nil || len(list) != program.MostUnread || all != 2*threads*calls {
		t.Errorf("%d records and %d lost (%v)", len(list), lost, err)
	}
}

// A reader that takes records while threads append them gets each record, or learns that it was lost, also
// if some threads have no slot.
func TestTakenMeanwhile(t *testing.T) {
	for threads, calls := range map[int]int{4: 200_000, 600: 1000} {
		h := newHost(t, gigabyte)
		s, in := traced(t, h, newPlacer(t, h), 1), newInTurn()
		h.Tell("together %d %d %d", functionSize, threads, calls)
		answered := make(chan string)
		go func() { answered <- h.Line() }()
		for running := true; running; {
			select {
			case <-answered:
				running = false
			default:
			}
			in.take(t, s)
		}
		in.take(t, s)
		if n := in.all + int(in.lost); n != 2*threads*calls {
			t.Errorf("%d taken, %d lost, of %d", in.all, in.lost, 2*threads*calls)
		}
		if n := s.Lost(); threads == 4 && n != 0 {
			t.Errorf("%d of no thread", n)
		}
	}
}

// Signal handlers that interrupt the code, and run it, spoil nothing.
func TestTrailBySignals(t *testing.T) {
	h := newHost(t, 64*gigabyte)
	p := newPlacer(t, h)
	sums := newStore(t, p, h.ID, program.StoreSums)
	place(t, p, h.watch(1, atBody), program.Op{Do: program.OpAdd, Value: 1, Store: sums})
	s := newStore(t, p, h.ID, program.StoreTraces).(program.Trail)
	place(t, p, h.watch(1, atBegin), program.Op{Do: program.OpTrace, Mark: begun, Room: 65536, Store: s})
	place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpTrace, Mark: ended, Room: 65536, Store: s})
	var n int
	if _, err := fmt.Sscan(h.do("storm", 1, 700, 0), &n); err != nil {
		t.Fatal(err)
	}
	list, lost, err := s.Take()
	if err != nil || len(list)+int(lost) != 2*n {
		t.Fatalf("%d records and %d lost (%v), want %d", len(list), lost, err, 2*n)
	}
	open := 0
	for _, r := range list {
		switch r.Mark {
		case begun:
			open++
		case ended:
			open--
		default:
			t.Fatalf("record %+v", r)
		}
		if r.Time == 0 || lost == 0 && open < 0 {
			t.Fatalf("record %+v, %d calls are open", r, open)
		}
	}
	if lost == 0 && open != 0 {
		t.Errorf("%d calls are open at the end", open)
	}
}

// The rings of closed traces are used again. A trace is refused if there is no room for its rings.
func TestRoomForTrails(t *testing.T) {
	h := newHost(t, gigabyte)
	p := newPlacer(t, h)
	var refused error
	for n := range 100 {
		s, err := p.NewStore(h.ID, program.StoreTraces)
		if err != nil {
			t.Fatal(err)
		}
		list, errs := p.Place([]program.Placing{{
			Watch:   node.Watch{Event: node.EventReachedAddr, Proc: h.ID, Addr: h.place(1, atBegin)},
			Program: program.Program{{Do: program.OpTrace, Mark: begun, Room: 65536, Store: s}},
		}})
		if refused = errs[0]; refused == nil && n%2 == 0 {
			list[0].SetActive(true)
			h.do("call", 1, 10)
			if got, _, err := s.(program.Trail).Take(); err != nil || len(got) != 10 {
				t.Fatalf("trace %d: %d records (%v)", n, len(got), err)
			}
		}
		if refused == nil {
			if err := p.Remove(list); err != nil {
				t.Fatal(err)
			}
		}
		if n%2 == 0 || refused != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		if refused != nil {
			break
		}
	}
	if _, typed := refused.(*program.Refusal); !typed {
		t.Errorf("refused with %v", refused)
	}
}
