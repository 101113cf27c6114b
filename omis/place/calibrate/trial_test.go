//go:build linux

package calibrate

import (
	"math"
	"testing"

	"mirador/omis/program"
)

// TestSpread checks that the costs of timed and other occurrences are separated, even if
// places of one kind both begin and end intervals, or a place is missing without
// sampling.
func TestSpread(t *testing.T) {
	whole := &sites{begin: []site{{"entry", 1}, {"inside", 2}}, end: []site{{"return", 5}, {"inside", 2}}}
	other := &sites{clock: program.ClockFast, begin: []site{{"other", 1}}}
	whole.filling = []site{{"return, filling", 5}}
	part := &sites{oneIn: some, begin: []site{{"entry, some", 1}, {"inside, some", 2}, {"new, some", 3}}, end: []site{{"return, some", 5}, {"inside, some", 2}}}
	part.filling = []site{{"return, filling some", 5}}
	all := map[string]program.Cost{"return, filling": {Time: 29}, "entry": {Time: 20}, "inside": {Time: 30}, "return": {Time: 25}, "other": {Time: 1}}
	const skipped = 2
	mixed := func(timed float64) program.Cost { return program.Cost{Time: skipped + (timed-skipped)/some, Before: 7} }
	costs := map[string]program.Cost{"entry, some": mixed(20), "inside, some": mixed(30), "return, some": mixed(25), "new, some": mixed(9)}
	part.spread(costs, all, []*sites{whole, other, part})
	for kind, timed := range map[string]float64{"entry, some": 20, "inside, some": 30, "return, some": 25, "return, filling some": 29} {
		if c := costs[kind]; c.Time != timed || math.Abs(c.Count-skipped) > 1e-9 || c.Before != 7 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
	if _, known := costs["new, some"]; known || len(costs) != 4 {
		t.Errorf("the known costs are %v", costs)
	}
	part.spread(costs, map[string]program.Cost{}, nil)
	if len(costs) != 0 {
		t.Errorf("without other sites the costs are %v", costs)
	}
}

// TestCostsOfMore checks that the costs of the end of an interval with a histogram, and
// of a record, are separated from other costs.
func TestCostsOfMore(t *testing.T) {
	s := &sites{
		begin: []site{{"entry", 1}}, end: []site{{"return", 5}, {"inside", 2}},
		filling: []site{{"return, histogram", 5}, {"inside, histogram", 2}}, traced: []site{{"entry, traced", 1}},
	}
	const bare, count, time, bucket, record = 50, 2, 20, 3, 7
	add := map[string]float64{"entry": count, "return": count, "inside": count, "entry, traced": record}
	list := s.trials()
	if len(list) != 8 {
		t.Fatalf("there are %d trials", len(list))
	}
	for _, one := range list {
		added, inside := add[one.begin], 0.0
		if one.timed() {
			added, inside = 2*time, 11
		}
		if s.fillsHistogram(one) {
			added, inside = added+bucket, inside+1
		}
		one.bare, one.bareTimed, one.probed, one.measured, one.intervals = bare, 7*bare, []float64{bare + added}, []float64{7*bare + inside}, 1000
	}
	all := s.costs(list)
	for _, kind := range []string{"return", "inside"} {
		if plain, c := all[kind], all[kind+", histogram"]; c.Count != plain.Count || c.Time != plain.Time+bucket || c.Before != plain.Before+1 {
			t.Errorf("%s: %+v, with a histogram %+v", kind, plain, c)
		}
	}
	if c := all["entry, traced"]; c != (program.Cost{Count: record}) {
		t.Errorf("to append a record costs %+v", c)
	}
}
