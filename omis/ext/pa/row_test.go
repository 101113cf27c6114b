package pa

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis/node"
	"mirador/omis/program"
)

// clock is a clock that a test sets.
type clock int64

func (c *clock) now() int64 { return int64(*c) }

func TestRecursionAndNesting(t *testing.T) {
	var c clock
	var r row
	for i, sp := range []uint64{100, 80, 60} {
		c = clock(10 * i)
		r.start(&r.stack, sp, c.now)
	}
	for i, sp := range []uint64{60, 80, 100} {
		r.stop(&r.stack, sp, int64(30+10*i))
	}
	if r.count != 3 || r.last != 50 || r.min != 10 || r.max != 50 || r.sum.Lo != 90 || r.squares.Lo != 100+900+2500 || r.unfinished != 0 {
		t.Errorf("row %+v", r)
	}
}

// TestUnfinished checks that the intervals of frames that an exception left are dropped at
// the first event whose stack pointer shows that the frames do not exist any more.
func TestUnfinished(t *testing.T) {
	var c clock
	for name, test := range map[string]struct {
		do                func(r *row)
		count, unfinished int64
		open              int
	}{
		"caught by the caller that returns": {func(r *row) {
			r.start(&r.stack, 100, c.now)
			r.start(&r.stack, 80, c.now)
			r.start(&r.stack, 60, c.now)
			r.stop(&r.stack, 100, 1)
		}, 1, 2, 0},
		"called again at the same place": {func(r *row) {
			r.start(&r.stack, 100, c.now)
			r.start(&r.stack, 80, c.now)
			r.start(&r.stack, 80, c.now)
			r.stop(&r.stack, 80, 1)
		}, 1, 1, 1},
		"called again above": {func(r *row) {
			r.start(&r.stack, 100, c.now)
			r.start(&r.stack, 60, c.now)
			r.start(&r.stack, 80, c.now)
		}, 0, 1, 2},
		"the start was not seen": {func(r *row) {
			r.start(&r.stack, 100, c.now)
			r.stop(&r.stack, 80, 1)
			r.stop(&r.stack, 100, 1)
			r.stop(&r.stack, 100, 1)
		}, 1, 0, 0},
		"by nesting": {func(r *row) {
			r.start(&r.stack, 0, c.now)
			r.start(&r.stack, 0, c.now)
			r.stop(&r.stack, 0, 1)
			r.stop(&r.stack, 0, 1)
			r.stop(&r.stack, 0, 1)
		}, 2, 0, 0},
	} {
		var r row
		test.do(&r)
		if r.count != test.count || r.unfinished != test.unfinished || len(r.open) != test.open {
			t.Errorf("%s: count %d, unfinished %d, open %d; want %d, %d, %d",
				name, r.count, r.unfinished, len(r.open), test.count, test.unfinished, test.open)
		}
	}
}

func TestBoundOfOpenIntervals(t *testing.T) {
	var c clock
	var r row
	for i := range maxOpen + 5 {
		r.start(&r.stack, uint64(10*maxOpen-i), c.now)
	}
	if len(r.open) != maxOpen || r.unfinished != 5 {
		t.Errorf("open %d, unfinished %d", len(r.open), r.unfinished)
	}
}

// TestRowProperties lets a program call, return and throw at random. Intervals that end
// normally must be measured exactly, and each interval must be measured, dropped or open.
func TestRowProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		var r row
		type frame struct {
			sp   uint64
			from int64
		}
		var stack []frame
		var starts, count int64
		var sum uint64
		sp := uint64(1 << 40)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c += clock(rapid.IntRange(1, 1000).Draw(t, "passes"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // an exception, caught some frames further up
				if n := rapid.IntRange(0, len(stack)).Draw(t, "caught"); n < len(stack) {
					sp = stack[n].sp
					stack = stack[:n]
				}
			case 1, 2, 3, 4:
				if len(stack) > 0 {
					top := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					r.stop(&r.stack, top.sp, int64(c))
					sp = top.sp
					count++
					sum += uint64(int64(c) - top.from)
				}
			default:
				sp -= uint64(rapid.IntRange(8, 64).Draw(t, "frame"))
				r.start(&r.stack, sp, c.now)
				stack = append(stack, frame{sp, int64(c)})
				starts++
			}
		}
		if r.count != count || r.sum.Lo != sum || r.count+r.unfinished+int64(len(r.open)) != starts {
			t.Fatalf("row %+v, want count %d, sum %d of %d starts", r, count, sum, starts)
		}
	})
}

func TestSumsAreExact(t *testing.T) {
	var r row
	const long = math.MaxInt64 // 292 years
	for range 4 {
		r.measured(long)
	}
	if want := 4 * float64(long); r.sum.Float() != want {
		t.Errorf("sum %g, want %g", r.sum.Float(), want)
	}
	if want := 4 * float64(long) * float64(long); r.squares.Float() != want {
		t.Errorf("sum of squares %g, want %g", r.squares.Float(), want)
	}
}

// TestExactRow checks that exact rows have exact sums of durations and of their squares,
// which floating point numbers would round.
func TestExactRow(t *testing.T) {
	durations := []uint64{36e9 - 500, math.MaxInt64, 36e9 + 500, 1}
	r := row{owner: owner{"p_1", "t_1"}, unfinished: 7}
	sum, squares := new(big.Int), new(big.Int)
	for _, ns := range durations {
		r.measured(ns)
		x := new(big.Int).SetUint64(ns)
		sum.Add(sum, x)
		squares.Add(squares, x.Mul(x, x))
	}
	list := r.exact(nil)
	wide := func(i int) *big.Int {
		n := new(big.Int).SetUint64(list[i].N)
		return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(list[i+1].N))
	}
	if wide(4).Cmp(sum) != 0 || wide(6).Cmp(squares) != 0 {
		t.Errorf("sum %v and squares %v, want %v and %v", wide(4), wide(6), sum, squares)
	}
	if list[2].N != 4 || list[3].N != 1 || list[8].N != 1 || list[9].N != math.MaxInt64 || list[10].N != 7 {
		t.Errorf("row %v", list)
	}
}

func BenchmarkCounter(b *testing.B) {
	c, o := newCounter(), owner{"p_1", "t_1"}
	for b.Loop() {
		c.add(o, 1)
	}
}

func BenchmarkTimer(b *testing.B) {
	var at clock
	tm, o := newTimer(), owner{"p_1", "t_1"}
	for b.Loop() {
		tm.start(o, node.StackPlace{SP: 64}, at.now)
		tm.stop(o, node.StackPlace{SP: 64}, 10)
	}
}

// TestGoroutineChangesThread checks that an interval that a goroutine begins on one
// thread and ends on another counts for the latter, that the number of open intervals is
// always right, and that a cancelled one is unfinished.
func TestGoroutineChangesThread(t *testing.T) {
	var c clock
	tm, first, second := newTimer(), owner{"p_1", "t_1"}, owner{"p_1", "t_2"}
	at := func(g, sp uint64) node.StackPlace { return node.StackPlace{Goroutine: g, SP: -sp} }
	tm.start(first, at(0x1000, 64), c.now)
	c = 10
	tm.start(first, at(0x2000, 64), c.now)
	tm.stop(second, at(0x1000, 64), 30)
	tm.stop(second, at(0x1000, 64), 31) // its start was not seen
	one, two := tm.byThread[first], tm.byThread[second]
	if one.count != 0 || one.begun() != 2 || two.count != 1 || two.last != 30 || two.begun() != 0 || one.away+two.away != 1 {
		t.Errorf("%+v, %+v", one, two)
	}
	tm.BreakOff("p_1")
	tm.stop(first, at(0x2000, 64), 40)
	if n := one.unfinished + two.unfinished; n != 1 || one.away+two.away != 0 || one.count != 0 {
		t.Errorf("broken off: %+v, %+v", one, two)
	}
	if err := tm.canTime(node.StackPlace{Unknown: errors.New("no symbol")}); err == nil {
		t.Error("a timer accepts an unknown goroutine")
	}
	tm.clock = program.ClockCPU
	if err := tm.canTime(at(0x1000, 64)); err == nil {
		t.Error("a timer accepts the CPU time of a goroutine")
	}
}
