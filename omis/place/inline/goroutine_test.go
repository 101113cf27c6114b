//go:build linux && amd64

package inline_test

import (
	"testing"

	"mirador/omis/place/clock"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// eachGoClock runs a test for Go code with each kind of clock that the code can read.
func eachGoClock(t *testing.T, test func(*testing.T, *host, *inline.Placer, *fakePage, clock.Kind)) {
	for _, k := range []clock.Kind{clock.Counter, clock.Page} {
		t.Run(k.String(), func(t *testing.T) {
			h := newHost(t, gigabyte)
			h.goes = true
			f := h.fakePage(half)
			which := f.clock
			if k == clock.Counter {
				which = forced(t, k)
			}
			p := inline.NewWith(h, which)
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, h, p, f, k)
		})
	}
}

// The code leaves all registers, the flags and the stack of a goroutine unchanged, also if it finds another
// line than the monitor has seen.
func TestNothingElseChangesOfGoroutines(t *testing.T) {
	eachGoClock(t, func(t *testing.T, h *host, p *inline.Placer, f *fakePage, _ clock.Kind) {
		h.checkTiming(p)
		f.stale.Store(true)
		f.change(half)
		h.checkTiming(p)
	})
}

// An interval of a goroutine that ends on another thread than it began on belongs to the thread on which it
// ends. Its line is that of the goroutine.
func TestGoroutineChangesThread(t *testing.T) {
	eachGoClock(t, func(t *testing.T, h *host, p *inline.Placer, f *fakePage, k clock.Kind) {
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStart, Store: intervals})
		place(t, p, h.watch(2, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		h.do("share", 0, 1)
		later := half
		later.Time += 1 << 40
		const all, perLine = 60, 3
		lost := 0
		for n := range all {
			h.do("call", 1, 1)
			if changes := n%perLine == perLine-1; changes {
				f.change([]clock.Line{later, half}[n/perLine%2])
				if k == clock.Page {
					lost++
				}
			}
			h.do("onebyone", 2, 1, 1)
		}
		var finished, unfinished, open int64
		list := rows(t, intervals)
		for _, r := range list {
			finished, unfinished, open = finished+r.Count, unfinished+r.Unfinished, open+r.Open
		}
		if finished != int64(all-lost) || unfinished != int64(lost) || open != 0 || intervals.Lost() != uint64(lost) {
			t.Errorf("%d finished, %d not, %d open, %d lost; want %d and %d", finished, unfinished, open, intervals.Lost(), all-lost, lost)
		}
		if list[0].TID != h.PID || list[0].Open != all || list[0].Count != 0 {
			t.Errorf("the thread on which they began: %+v", list[0])
		}
	})
}

// Intervals that were open when the timer was reset do not count. Later intervals count, also if the
// counter was set back meanwhile.
func TestGoroutinesResetAndSetBack(t *testing.T) {
	eachGoClock(t, func(t *testing.T, h *host, p *inline.Placer, _ *fakePage, _ clock.Kind) {
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStart, Store: intervals})
		place(t, p, h.watch(2, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		const shift = 1 << 40
		for range 2 {
			h.do("call", 1, 1)
			if err := intervals.Reset(); err != nil {
				t.Fatal(err)
			}
			h.do("call", 2, 1)
			if list := rows(t, intervals); len(list) != 0 && list[0].Count+list[0].Unfinished+list[0].Open != 0 {
				t.Errorf("opened before the reset: %+v", list)
			}
			h.do("call", 1, 1)
			inline.PutOff(intervals, 1<<64-shift) // as if it had begun when the counter was lower
			h.do("call", 2, 1)
			if got := rows(t, intervals)[0]; got.Count != 1 || got.Min < shift/8 || got.Open != 0 {
				t.Errorf("opened after the reset: %+v", got)
			}
		}
	})
}

// A timer may measure functions of Go and others. Their open intervals are separate: removing some leaves
// the others.
func TestTimerOfGoAndOthers(t *testing.T) {
	eachGoClock(t, func(t *testing.T, h *host, p *inline.Placer, f *fakePage, k clock.Kind) {
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		for _, goes := range []bool{false, true} {
			h.goes = goes
			functions := 1
			if goes {
				functions = 3
			}
			place(t, p, h.watch(functions, atEnd), program.Op{Do: program.OpStart, Store: intervals})
			place(t, p, h.watch(functions+1, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		}
		want := func(when string, finished, unfinished, open int64) {
			t.Helper()
			if got := rows(t, intervals)[0]; got.Count != finished || got.Unfinished != unfinished || got.Open != open {
				t.Errorf("%s: %+v, want %d, %d and %d", when, got.Intervals, finished, unfinished, open)
			}
		}
		h.do("call", 3, 1)
		h.do("call", 1, 1)
		want("both are open", 0, 0, 2)
		later := half
		later.Time += 1 << 40
		f.change(later)
		h.do("call", 4, 1)
		h.do("call", 2, 1)
		if k == clock.Page {
			want("the page has changed", 0, 2, 0)
		} else {
			want("both have ended", 2, 0, 0)
		}
		for range 5 {
			for _, function := range []int{1, 3, 2, 4} {
				h.do("call", function, 1)
			}
		}
		if k == clock.Page {
			want("all have ended", 10, 2, 0)
		} else {
			want("all have ended", 12, 0, 0)
		}
	})
}
