//go:build linux && amd64

package inline_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// pageAt is where the code of a host has a page that replaces the hypervisor's.
const pageAt = 0xff000

// fakePage replaces the page of a hypervisor, for a host and its monitor.
type fakePage struct {
	bytes []byte
	at    uint64
	line  clock.Line
	stale atomic.Bool // the monitor does not see changes
	seen  clock.Line  // what it sees then
}

func (h *host) fakePage(l clock.Line) *fakePage {
	f := &fakePage{bytes: h.code[pageAt:][:64], at: h.at + pageAt}
	f.change(l)
	return f
}

func (f *fakePage) version() *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&f.bytes[0])) }

// change writes another line, as a hypervisor does.
func (f *fakePage) change(l clock.Line) {
	l.Version = f.line.Version + 2
	f.version().Add(1)
	l.Put(f.bytes)
	f.version().Add(1)
	f.line = l
}

// clock is a replacement of Judge.
func (f *fakePage) clock() (clock.Clock, error) {
	return clock.Clock{
		Kind: clock.Page, Source: "fake",
		Locate: func(int) (uint64, error) { return f.at, nil },
		Line: func() (clock.Line, error) {
			if f.stale.Load() {
				return f.seen, nil
			}
			for {
				if l, whole := clock.ParseLine(f.bytes); whole && l.Version == f.version().Load() {
					f.seen = l
					return l, nil
				}
			}
		},
	}, nil
}

// half has ticks of half a nanosecond.
var half = clock.Line{Ticks: 1 << 40, Time: 77 << 30, Mul: 1 << 31, Shift: 0, Flags: 1}

// forced returns a clock of a kind that this machine has.
func forced(t testing.TB, k clock.Kind) func() (clock.Clock, error) {
	c, err := clock.This().Forced(k)
	if err != nil {
		t.Fatal(err)
	}
	return func() (clock.Clock, error) { return c, nil }
}

// eachClock runs a test with code that reads each kind of clock.
func eachClock(t *testing.T, size int, test func(*testing.T, *host, *inline.Placer)) {
	for _, k := range []clock.Kind{clock.Counter, clock.Page, clock.Function} {
		t.Run(k.String(), func(t *testing.T) {
			h := newHost(t, size)
			which := h.fakePage(half).clock
			if k != clock.Page {
				which = forced(t, k)
			}
			p := inline.NewWith(h, which)
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, h, p)
		})
	}
}

// eachOwner runs a test with intervals of threads, and with intervals of goroutines.
func eachOwner(t *testing.T, test func(*testing.T, *host)) {
	for what, goes := range map[string]bool{"of threads": false, "of goroutines": true} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t, gigabyte)
			h.goes = goes
			test(t, h)
		})
	}
}

// spin is a function's body that waits until the counter has advanced by 20,000.
var spin = []byte{
	0x0f, 0xae, 0xe8, 0x0f, 0x31, // lfence; rdtsc
	0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, // shl $32, %rdx; or %rdx, %rax
	0x48, 0x89, 0xc1, // mov %rax, %rcx
	0x0f, 0xae, 0xe8, 0x0f, 0x31, // 1: lfence; rdtsc
	0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, // shl $32, %rdx; or %rdx, %rax
	0x48, 0x29, 0xc8, // sub %rcx, %rax
	0x48, 0x3d, 0x20, 0x4e, 0, 0, // cmp $20000, %rax
	0x72, 0xe9, // jb 1b
}

const spun = 20_000

// The code leaves all registers, the flags and the stack unchanged, whatever clock it reads.
func TestNothingElseChangesByAnyClock(t *testing.T) {
	eachClock(t, gigabyte, func(t *testing.T, h *host, p *inline.Placer) {
		h.t = t
		h.checkTiming(p)
	})
}

// checkTiming runs the code of programs that measure time, with random registers and memory.
func (h *host) checkTiming(p *inline.Placer) {
	h.t.Helper()
	intervals, some, traced := newStore(h.t, p, h.ID, program.StoreIntervals), newStore(h.t, p, h.ID, program.StoreIntervals), newStore(h.t, p, h.ID, program.StoreHistograms)
	for _, steps := range [][]program.Op{
		{{Do: program.OpStart, Store: intervals}, {Do: program.OpStop, Store: intervals}},
		{{Do: program.OpStart, Store: some, OneIn: 3}},
		{{Do: program.OpStop, Store: some, OneIn: 3}},
		{{Do: program.OpStart, Store: traced}, {Do: program.OpStop, Store: traced}},
	} {
		for _, where := range []int{atBegin, atBody, atEnd} {
			h.checked(p, where, node.Watch{}, true, steps...)
		}
	}
	if list := rows(h.t, intervals); len(list) != 1 || list[0].Count < 6000-3 {
		h.t.Errorf("measured: %+v", list)
	}
}

// A duration is the same number of nanoseconds by each clock.
func TestDurationsByAnyClock(t *testing.T) {
	eachClock(t, gigabyte, func(t *testing.T, h *host, p *inline.Placer) {
		h.body = spin
		_, intervals := timed(t, h, p)
		h.do("call", 1, 300)
		got := rows(t, intervals)[0]
		// The length of the body in ticks, by the monitor's clock.
		ticks, begin := clock.Ticks(), time.Now()
		time.Sleep(20 * time.Millisecond)
		length := float64(time.Since(begin)) / float64(clock.Ticks()-ticks)
		if strings.Contains(t.Name(), "page") {
			length = 0.5
		}
		want := spun * length
		if got.Count != 300 || float64(got.Min) < want*0.98 || float64(got.Min) > want*1.1+200 {
			t.Errorf("%+v, want 300 of %.0f ns or more", got.Intervals, want)
		}
	})
}

// The hypervisor changes the page; no interval is converted by another line than its own, with the monitor
// and without. Each change is of rate, origin, both, or neither.
func TestPageChanges(t *testing.T) {
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("monitor sees them %v", alive), func(t *testing.T) {
			eachOwner(t, func(t *testing.T, h *host) {
				h.body = spin
				f := h.fakePage(half)
				p := inline.NewWith(h, f.clock)
				t.Cleanup(func() { p.Close() })
				_, intervals := timed(t, h, p)
				h.do("call", 1, 1)
				if !alive {
					f.stale.Store(true)
				}
				// The rates are so different that intervals of one cannot be mistaken for another's: 20,000
				// ticks take 10, 20 or 40 µs, and at most half as much again.
				lines := []clock.Line{half, half, half, half}
				lines[1].Mul, lines[1].Shift = 1<<31, 1
				lines[2].Mul, lines[2].Shift = 1<<30, 3
				lines[3].Time += 5_000_000
				var calls, each [3]int64
				calls[0], each[0] = 1, spun/2
				each[1], each[2] = spun, 2*spun
				const changes, perChange = 1000, 3
				sum := rows(t, intervals)[0].Sum.Lo
				for n := range changes {
					l := lines[n%len(lines)]
					f.change(l)
					h.do("call", 1, perChange)
					rate := map[int8]int{0: 0, 1: 1, 3: 2}[l.Shift]
					calls[rate] += perChange
					now := rows(t, intervals)[0].Sum.Lo
					got := now - sum
					sum = now
					// An interrupted call takes longer; none takes less.
					if least := uint64(perChange * each[rate]); got < least {
						t.Fatalf("after change %d: %d calls took %d ns, want %d or more", n, perChange, got, least)
					}
				}
				got := rows(t, intervals)[0]
				if want := int64(1 + changes*perChange); got.Count != want || got.Unfinished != 0 {
					t.Errorf("%d intervals and %d unfinished, want %d and 0", got.Count, got.Unfinished, want)
				}
				if got.Min < spun/2 || got.Min > spun/2*3/2 {
					t.Errorf("the shortest took %d ns, want %d", got.Min, spun/2)
				}
			})
		})
	}
}

// An interval during which the line changes is removed and counted as lost; intervals of other rows of the
// thread, and later ones, are measured.
func TestPageChangesWithin(t *testing.T) {
	eachOwner(t, func(t *testing.T, h *host) {
		f := h.fakePage(half)
		p := inline.NewWith(h, f.clock)
		t.Cleanup(func() { p.Close() })
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStart, Store: intervals})
		place(t, p, h.watch(2, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		anew := f.line
		anew.Ticks, anew.Time = half.Ticks+1<<33, half.At(half.Ticks+1<<33)+3
		other, shifted := half, half
		other.Mul++
		shifted.Time += 1000
		finished, lost := int64(0), int64(0)
		for n := range 1000 {
			h.do("call", 1, 1)
			lines := []clock.Line{f.line, anew, shifted, half, other, half}
			to := lines[n%len(lines)]
			before := f.line
			f.change(to)
			h.do("call", 2, 1)
			if differs := to.Key() - before.Key() + clock.Tolerance; differs > 2*clock.Tolerance {
				lost++
			} else {
				finished++
			}
		}
		got := rows(t, intervals)[0]
		if got.Count != finished || got.Unfinished != lost || lost < 500 || finished < 300 || got.Open != 0 {
			t.Errorf("%d finished, %d not, %d open, want %d and %d", got.Count, got.Unfinished, got.Open, finished, lost)
		}
		if n := intervals.Lost(); n != uint64(lost) {
			t.Errorf("%d are told to be lost, want %d", n, lost)
		}
	})
}

// The same holds if only some intervals are timed: the clock is read late then.
func TestPageChangesWithinSampled(t *testing.T) {
	eachOwner(t, func(t *testing.T, h *host) {
		f := h.fakePage(half)
		p := inline.NewWith(h, f.clock)
		t.Cleanup(func() { p.Close() })
		intervals := newStore(t, p, h.ID, program.StoreHistograms)
		place(t, p, h.watch(1, atBody), program.Op{Do: program.OpStart, Store: intervals, OneIn: 4})
		place(t, p, h.watch(2, atBody), program.Op{Do: program.OpStop, Store: intervals, OneIn: 4})
		later := half
		later.Time += 1 << 40
		const all = 400
		for n := range all {
			h.do("call", 1, 1)
			if n%8 >= 4 {
				f.change([]clock.Line{later, half}[n%2])
			}
			h.do("call", 2, 1)
		}
		// One of each four is timed, and the page changes during half of the fours.
		if got := rows(t, intervals)[0]; got.Count != all/8 || got.Unfinished != all/8 || got.Skipped != all*3/4 || got.Max > uint64(time.Minute) {
			t.Errorf("%+v", got.Intervals)
		}
	})
}

// While the page changes all the time and threads measure, every value is computed by one of the page's rates.
func TestPageChangesConcurrently(t *testing.T) {
	eachOwner(t, func(t *testing.T, h *host) {
		h.body = spin
		f := h.fakePage(half)
		p := inline.NewWith(h, f.clock)
		t.Cleanup(func() { p.Close() })
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		sums := newStore(t, p, h.ID, program.StoreSums)
		place(t, p, h.watch(1, atBegin), program.Op{Do: program.OpAdd, Value: 1, Store: sums}, program.Op{Do: program.OpStart, Store: intervals})
		place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		done := make(chan struct{})
		changed := make(chan int)
		go func() {
			n := 0
			for ; ; n++ {
				select {
				case <-done:
					changed <- n
					return
				default:
				}
				l := half
				l.Mul, l.Time = half.Mul+uint32(n%2)<<30, half.Time+uint64(n)<<45
				f.change(l)
				time.Sleep(50 * time.Microsecond)
			}
		}()
		const threads, each = 3, 4000
		h.do("together", 1, threads, each)
		close(done)
		t.Logf("%d changes", <-changed)
		var finished, unfinished int64
		for _, r := range rows(t, intervals) {
			finished, unfinished = finished+r.Count, unfinished+r.Unfinished
			// By another line it would be hours longer or shorter.
			if r.Min < spun/2 || r.Max > uint64(time.Minute) {
				t.Errorf("from %d to %d ns", r.Min, r.Max)
			}
		}
		if finished+unfinished != threads*each || unfinished == 0 || finished < threads*each/2 {
			t.Errorf("%d finished and %d not, of %d", finished, unfinished, threads*each)
		}
	})
}

// If the counter was set back while an interval was open, the interval gives no duration.
func TestCounterSetBack(t *testing.T) {
	eachOwner(t, func(t *testing.T, h *host) {
		p := inline.NewWith(h, forced(t, clock.Counter))
		t.Cleanup(func() { p.Close() })
		intervals := newStore(t, p, h.ID, program.StoreIntervals)
		place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpStart, Store: intervals})
		place(t, p, h.watch(2, atEnd), program.Op{Do: program.OpStop, Store: intervals})
		h.do("call", 1, 1)
		h.do("call", 2, 1)
		h.do("call", 1, 1)
		inline.PutOff(intervals, 1<<40)
		h.do("call", 2, 1)
		if got := rows(t, intervals)[0]; got.Count != 1 || got.Unfinished != 1 || got.Open != 0 || intervals.Lost() != 1 {
			t.Errorf("%+v, %d lost", got.Intervals, intervals.Lost())
		}
	})
}

// Without a clock, programs that measure time are refused, with the reason; others are not.
func TestNoClock(t *testing.T) {
	h := newHost(t, gigabyte)
	why := errors.New("the kernel's clock is hpet")
	p := inline.NewWith(h, func() (clock.Clock, error) { return clock.Clock{}, why })
	t.Cleanup(func() { p.Close() })
	if p.Check() != why {
		t.Error(p.Check())
	}
	sums, intervals := newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreIntervals)
	w := h.watch(1, atBegin)
	w.Event = node.EventReachedAddr
	list, errs := p.Place([]program.Placing{
		{Watch: w, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: sums}}},
		{Watch: w, Program: program.Program{{Do: program.OpStart, Store: intervals}}},
	})
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "hpet") {
		t.Fatal(errs)
	}
	if err := p.Remove(list[:1]); err != nil {
		t.Error(err)
	}
}

// If a process has unmapped the kernel's page, code that would read it is not installed.
func TestPageUnmapped(t *testing.T) {
	h := newHost(t, gigabyte)
	f := h.fakePage(half)
	c, _ := f.clock()
	c.Locate = func(int) (uint64, error) { return 0, errors.New("the process has unmapped [vvar_vclock]") }
	p := inline.NewWith(h, func() (clock.Clock, error) { return c, nil })
	t.Cleanup(func() { p.Close() })
	intervals := newStore(t, p, h.ID, program.StoreIntervals)
	w := h.watch(1, atBegin)
	w.Event = node.EventReachedAddr
	_, errs := p.Place([]program.Placing{{Watch: w, Program: program.Program{{Do: program.OpStart, Store: intervals}}}})
	var refusal *program.Refusal
	if !errors.As(errs[0], &refusal) || !strings.Contains(refusal.Why, "unmapped") {
		t.Error(errs[0])
	}
}

// The times of a trace are by the kernel's clock, whatever clock the code reads.
func TestTimesOfNotesByAnyClock(t *testing.T) {
	for _, k := range []clock.Kind{clock.Counter, clock.Page, clock.Function} {
		t.Run(k.String(), func(t *testing.T) {
			h := newHost(t, gigabyte)
			f := h.fakePage(half)
			which := f.clock
			if k == clock.Page {
				// A page whose rate is that of the counter.
				begin, ticks := time.Now(), clock.Ticks()
				time.Sleep(50 * time.Millisecond)
				length := float64(time.Since(begin)) / float64(clock.Ticks()-ticks)
				f.change(clock.Line{Ticks: clock.Ticks(), Time: 5_000_000_000, Mul: uint32(length * (1 << 31)), Shift: 1, Flags: 1})
			} else {
				which = forced(t, k)
			}
			p := inline.NewWith(h, which)
			t.Cleanup(func() { p.Close() })
			trace := newStore(t, p, h.ID, program.StoreTraces)
			place(t, p, h.watch(1, atEnd), program.Op{Do: program.OpTrace, Value: 1, Room: 100, Store: trace})
			before := monotonic(t)
			h.do("call", 1, 1)
			after := monotonic(t)
			records, _, err := trace.(program.Trail).Take()
			const rough = int64(time.Millisecond)
			if err != nil || len(records) != 1 || records[0].Time < before-rough || records[0].Time > after+rough {
				t.Errorf("%+v (%v), want one from %d to %d", records, err, before, after)
			}
		})
	}
}

// Go code does not call a function that reads the clock: its stack may be too small.
func TestNoCallsOnGoroutines(t *testing.T) {
	eachClock(t, gigabyte, func(t *testing.T, h *host, p *inline.Placer) {
		h.goes = true
		sums, trace := newStore(t, p, h.ID, program.StoreSums), newStore(t, p, h.ID, program.StoreTraces)
		w := h.watch(1, atBegin)
		w.Event = node.EventReachedAddr
		list := []program.Placing{
			{Watch: w, Program: program.Program{{Do: program.OpAdd, Value: 1, Store: sums}}},
			{Watch: w, Program: program.Program{{Do: program.OpTrace, Value: 1, Room: 100, Store: trace}}},
		}
		_, judged := p.Judge(list)
		placed, errs := p.Place(list)
		for _, errs := range [][]error{judged, errs} {
			refused := errs[1] != nil && strings.Contains(errs[1].Error(), "stacks of goroutines")
			if calls := strings.Contains(t.Name(), "vDSO"); errs[0] != nil || refused != calls {
				t.Error(errs)
			}
		}
		for _, one := range placed {
			if one != nil {
				if err := p.Remove([]program.Placed{one}); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
