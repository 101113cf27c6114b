//go:build linux && amd64

package kernel_test

import (
	"bytes"
	"testing"
	"time"

	"mirador/omis/monitor/rig"
	"mirador/omis/program"
)

// Some programs of a bunch are removed while threads run into all of them. The others count each hit
// exactly once, although their uprobes are set again.
func TestPartOfABunch(t *testing.T) {
	g, p := rig.Start(t, rig.Scenes(t)), newPlacer(t)
	before := g.Code(g.Func["nap"], g.Size["nap"])
	sums, twin := newStore(t, p, g.ID, program.StoreSums), newStore(t, p, g.ID, program.StoreSums)
	intervals := newStore(t, p, g.ID, program.StoreIntervals)
	work, exits := g.Func["work"], g.Exits("work")
	count := program.Program{{Do: program.OpAdd, Value: 1, Store: sums}}
	for _, placed := range placeAt(t, p, g.ID, program.Program{{Do: program.OpStart, Store: intervals}}, work) {
		defer p.Remove([]program.Placed{placed})
		placed.SetActive(true)
	}
	for _, placed := range placeAt(t, p, g.ID, program.Program{{Do: program.OpStop, Store: intervals}, {Do: program.OpAdd, Value: 1, Store: twin}}, exits...) {
		defer p.Remove([]program.Placed{placed})
		placed.SetActive(true)
	}
	const rounds = 6
	others := []uint64{g.Func["nap"], g.Func["recurse"], g.Func["jump"]}
	for range rounds {
		all := placeAt(t, p, g.ID, count, append(others, work)...)
		for _, placed := range all {
			placed.SetActive(true)
		}
		g.Tell("together 3 2000")
		time.Sleep(10 * time.Millisecond)
		for _, placed := range all[:len(others)] {
			if err := p.Remove([]program.Placed{placed}); err != nil {
				t.Fatal(err)
			}
		}
		g.Line()
		if err := p.Remove(all[len(others):]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(before, g.Code(g.Func["nap"], g.Size["nap"])) {
		t.Error("the code is not what it was")
	}
	for what, s := range map[string]program.Store{"entries": sums, "exits": twin} {
		var sum int64
		for _, r := range rows(t, s) {
			sum += r.Value
		}
		if want := int64(rounds * 3 * 2000); sum != want {
			t.Errorf("%d %s were counted, want %d", sum, what, want)
		}
	}
}
