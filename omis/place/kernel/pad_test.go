//go:build linux && amd64

package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// pads has functions that begin with a landing pad, and the kind of place of each.
var pads = []struct{ name, kind string }{
	{"pad_push", kernel.Emulated}, {"pad_nops", kernel.Emulated}, {"pad_jump", kernel.Emulated}, {"pad_call", kernel.Emulated},
	{"pad_ret", kernel.Stepped}, {"pad_sub", kernel.Stepped},
	// A branch leads to the instruction behind these pads.
	{"pad_loop", kernel.Stepped}, {"pad_far", kernel.Stepped}, {"pad_table", kernel.Stepped}, {"pad_back", kernel.Stepped},
}

// buildPads compiles a target with these functions.
func buildPads(t *testing.T, flags ...string) string {
	return subject.Compile(t, "pads", append(flags, "-O1", "testdata/many.c", "testdata/pads.s")...)
}

// Uprobes are set behind landing pads if no branch leads there. All calls are counted and timed.
func TestLandingPads(t *testing.T) {
	for _, flags := range [][]string{{"-pie", "-fPIE"}, {"-no-pie"}} {
		g := rig.Start(t, buildPads(t, flags...))
		p := newPlacer(t)
		var sums, intervals []program.Store
		for _, f := range pads {
			sums = append(sums, newStore(t, p, g.ID, program.StoreSums))
			intervals = append(intervals, newStore(t, p, g.ID, program.StoreIntervals))
			last, exits := len(sums)-1, g.Exits(f.name)
			steps := program.Program{{Do: program.OpAdd, Value: 1, Store: sums[last]}, {Do: program.OpStart, Store: intervals[last]}}
			v := place(t, p, g.ID, g.Func[f.name], steps...).Verdict()
			if v.Kind != f.kind {
				t.Errorf("%s, %s: %s, want %s (%s)", flags, f.name, v.Kind, f.kind, v.Where)
			}
			for _, exit := range exits {
				place(t, p, g.ID, exit, program.Op{Do: program.OpStop, Store: intervals[last]})
			}
		}
		const rounds = 50
		for range rounds {
			g.Do("all 0 %d", len(pads))
		}
		for i, f := range pads {
			counted, timed := rows(t, sums[i]), rows(t, intervals[i])
			if len(counted) != 1 || counted[0].Value != rounds {
				t.Errorf("%s, %s: %+v, want %d", flags, f.name, counted, rounds)
			}
			// pad_call calls a function inside itself, whose return is an exit of pad_call, too. The
			// stack pointer is another one there, so no interval ends.
			if len(timed) != 1 || timed[0].Count != rounds || timed[0].Unfinished != 0 || timed[0].Open != 0 {
				t.Errorf("%s, %s: %+v, want %d intervals", flags, f.name, timed, rounds)
			}
			own := g.Code(g.Func["many_calls"]+uint64(8*i), 1)
			if f.name != "pad_ret" && own[0] != rounds {
				t.Errorf("%s, %s has counted %d itself, want %d", flags, f.name, own[0], rounds)
			}
		}
	}
}

// A breakpoint is refused at both the pad and the address behind it while a uprobe is behind the pad. If
// another tool has changed the code behind the pad, the uprobe is set at the pad.
func TestLandingPadCovered(t *testing.T) {
	g := rig.Start(t, buildPads(t))
	p := newPlacer(t)
	addr := g.Func["pad_push"]
	before := g.Code(addr, 16)
	sums := newStore(t, p, g.ID, program.StoreSums)
	add := program.Program{{Do: program.OpAdd, Value: 1, Store: sums}}
	placed := placeAt(t, p, g.ID, add, addr, addr+4)
	for _, at := range []uint64{addr, addr + 4} {
		if !placed[0].Covers(at) {
			t.Errorf("%#x is not covered", at)
		}
	}
	for _, one := range placed {
		one.SetActive(true)
	}
	g.Do("all 0 1")
	if got := rows(t, sums); len(got) != 1 || got[0].Value != 2 {
		t.Errorf("%+v, want both to count", got)
	}
	if err := p.Remove(placed); err != nil {
		t.Error(err)
	}
	if after := g.Code(addr, 16); string(after) != string(before) {
		t.Errorf("the code is % x, not % x", after, before)
	}
	poke(t, g, addr+4)
	verdicts, errs := p.Judge([]program.Placing{{Watch: node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: addr}}})
	if err := errors.Join(errs...); err != nil || verdicts[0].Kind != kernel.Stepped {
		t.Errorf("%+v, %v", verdicts, err)
	}
}

// A program that does more than to count and to measure time has another kind of place, with costs of its
// own, both before and after it is placed.
func TestKindsOfMore(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	intervals, trail := newStore(t, p, g.ID, program.StoreHistograms), newTrail(t, p, g.ID)
	begin, end := program.Op{Do: program.OpStart, Histogram: true, Store: intervals}, program.Op{Do: program.OpStop, Histogram: true, Store: intervals}
	record := program.Op{Do: program.OpTrace, Room: 10, Store: trail}
	w := node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Func["work"]}
	for added, steps := range map[string]program.Program{"": {begin, record}, " ": {end}, ", traced": {record}} {
		added = strings.TrimSuffix(added, " ")
		verdicts, errs := p.Judge([]program.Placing{{Watch: w, Program: steps}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, v := range []program.Verdict{verdicts[0], place(t, p, g.ID, w.Addr, steps...).Verdict()} {
			if kind := strings.TrimPrefix(strings.TrimPrefix(v.Kind, kernel.Emulated), kernel.Stepped); kind != added {
				t.Errorf("%+v is of the kind %s", steps, v.Kind)
			}
		}
	}
}
