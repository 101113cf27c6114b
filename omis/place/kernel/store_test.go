//go:build linux && amd64

package kernel_test

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"mirador/omis/monitor/rig"
	"mirador/omis/program"
)

// A recursion deeper than maxOpen is measured down to this depth.
func TestDeepRecursion(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newStore(t, p, g.ID, program.StoreIntervals)
	place(t, p, g.ID, g.Func["recurse"], program.Op{Do: program.OpStart, Store: s})
	for _, exit := range g.Exits("recurse") {
		place(t, p, g.ID, exit, program.Op{Do: program.OpStop, Store: s})
	}
	g.Do("recurse 999")
	list := rows(t, s)
	if len(list) != 1 || list[0].Count != 112 || list[0].Unfinished != 1000-112 || list[0].Open != 0 {
		t.Errorf("rows %+v", list)
	}
}

// Durations are correct.
func TestTimes(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newStore(t, p, g.ID, program.StoreIntervals)
	place(t, p, g.ID, g.Func["nap"], program.Op{Do: program.OpStart, Store: s})
	for _, exit := range g.Exits("nap") {
		place(t, p, g.ID, exit, program.Op{Do: program.OpStop, Store: s})
	}
	const ms = uint64(time.Millisecond)
	var r program.Row
	var took []uint64
	var sum, squares program.Uint128
	for _, nap := range []uint64{10, 4400, 20} { // the square of the longest has more than 64 bits
		g.Do("nap %d", nap)
		r = rows(t, s)[0]
		if r.Last < nap*ms {
			t.Errorf("a nap of %d ms took %d ns", nap, r.Last)
		}
		took = append(took, r.Last)
		sum, squares = plus(sum, program.Uint128{Lo: r.Last}), plus(squares, square(r.Last))
	}
	if r.Count != 3 || r.Min != slices.Min(took) || r.Max != slices.Max(took) || r.Sum != sum {
		t.Errorf("row %+v of %d", r, took)
	}
	if r.Squares != squares || squares.Hi == 0 {
		t.Errorf("sum of squares %v, want %v", r.Squares, squares)
	}
}

// More threads than a pool has rows end, and their values are kept.
func TestManyThreads(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newStore(t, p, g.ID, program.StoreSums)
	place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpAdd, Value: 1, Store: s})
	const threads = 20_000
	g.Do("onebyone %d 1", threads)
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	var sum, apart int64
	list := rows(t, s)
	for i, r := range list {
		if sum += r.Value; r.TID != 0 {
			apart += r.Value
		}
		if (i == 0) != (r.TID == 0) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if sum != threads || s.Lost() != 0 {
		t.Errorf("in all %d, lost %d", sum, s.Lost())
	}
	most := program.RowsOfEnded(1)*5/4 + 1<<9 // rows that fold leaves, and rows that are not worth a sweep
	if n := len(list); n > most || n < program.RowsOfEnded(1) || apart != int64(n-1) {
		t.Errorf("%d rows, of which those of threads tell of %d", n, apart)
	}
}

// A reset clears values; rows that are read while threads write them are consistent.
func TestResetWhileRunning(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	s := newStore(t, p, g.ID, program.StoreIntervals)
	stops := g.Exits("work")
	entry := place(t, p, g.ID, g.Func["work"], program.Op{Do: program.OpStart, Store: s})
	for _, exit := range stops {
		place(t, p, g.ID, exit, program.Op{Do: program.OpStop, Store: s})
	}
	g.Do("forever")
	g.Do("forever")
	g.Do("forever")
	for range 300 {
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows(t, s) {
			if n := uint64(r.Count); r.Sum.Lo < n*r.Min || r.Sum.Lo > n*r.Max || r.Count > 0 && (r.Last < r.Min || r.Last > r.Max) || r.Open > 1 || r.Unfinished > 0 {
				t.Fatalf("row %+v", r)
			}
		}
	}
	entry.SetActive(false)
	rig.Until(t, "no thread is in an interval", func() bool {
		return !slices.ContainsFunc(rows(t, s), func(r program.Row) bool { return r.Open > 0 })
	})
	time.Sleep(20 * time.Millisecond)
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if list := rows(t, s); len(list) != 0 {
		t.Errorf("rows %+v after a reset", list)
	}
}

func square(ns uint64) program.Uint128 {
	hi, lo := bits.Mul64(ns, ns)
	return program.Uint128{Hi: hi, Lo: lo}
}

func plus(a, b program.Uint128) program.Uint128 {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	return program.Uint128{Hi: a.Hi + b.Hi + carry, Lo: lo}
}
