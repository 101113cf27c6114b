//go:build linux && amd64

package inline_test

import (
	"testing"

	"mirador/omis/node"
	"mirador/omis/program"
)

// Sums of values that functions get as arguments continue without a monitor, and the next monitor adopts
// them. A program that loads something else is not adopted.
func TestKeptLoads(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	place := func(load program.Load) {
		t.Helper()
		w := e.h.watch(1, atBegin)
		w.Event = node.EventReachedAddr
		placed, errs := e.p.Place([]program.Placing{{Watch: w, Program: program.Program{{Do: program.OpAdd, Load: load, Store: e.sums}}}})
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		placed[0].SetActive(true)
		e.placed = placed
	}
	e.begin(t)
	place(program.ArgumentAt(0))
	for n := range int64(3) {
		e.h.do("call", 1, 100)
		stood := e.h.standing
		e.begin(t)
		e.h.do("onebyone", 1, 10, 10)
		place(program.ArgumentAt(0))
		if e.h.standing != stood {
			t.Errorf("%d patches were put in place of the one that stood", e.h.standing-stood)
		}
		if _, sum, _ := e.total(t); sum != 600*(n+1) {
			t.Errorf("the sum is %d, want %d", sum, 600*(n+1))
		}
	}
	e.begin(t)
	place(program.ArgumentAt(6))
	if orphans, err := e.p.Settle(); err != nil || len(orphans) != 1 {
		t.Errorf("orphans %v, %v", orphans, err)
	}
	e.end(t)
}

// Loads that are impossible inline are refused.
func TestOtherLoadsAreRefused(t *testing.T) {
	e := &keptHost{h: newHost(t, gigabyte)}
	e.begin(t)
	w := e.h.watch(1, atBegin)
	w.Event = node.EventReachedAddr
	for _, l := range []program.Load{{From: program.FromResult, Bytes: 8, Signed: true}, {From: program.FromArgument, Bytes: 8}, {From: program.FromArgument, Arg: 6, Bytes: 8, Signed: true}} {
		if _, errs := e.p.Judge([]program.Placing{{Watch: w, Program: program.Program{{Do: program.OpAdd, Load: l}}}}); errs[0] == nil {
			t.Errorf("%+v is loaded", l)
		}
	}
	e.end(t)
}
