//go:build linux && amd64

package calibrate

import (
	"math"
	"testing"

	"mirador/omis"
)

// What only some cost is told apart from what the others do, also where places of one
// kind begin intervals and end them, and where one could not be had before.
func TestSpread(t *testing.T) {
	whole := &sites{begin: []site{{"entry", 1}, {"inside", 2}}, end: []site{{"return", 5}, {"inside", 2}}}
	other := &sites{clock: omis.ClockFast, begin: []site{{"other", 1}}}
	part := &sites{oneIn: some, begin: []site{{"entry, some", 1}, {"inside, some", 2}, {"new, some", 3}}, end: []site{{"return, some", 5}, {"inside, some", 2}}}
	all := map[string]omis.Cost{"entry": {Time: 20}, "inside": {Time: 30}, "return": {Time: 25}, "other": {Time: 1}}
	const skipped = 2
	mixed := func(timed float64) omis.Cost { return omis.Cost{Time: skipped + (timed-skipped)/some, Before: 7} }
	costs := map[string]omis.Cost{"entry, some": mixed(20), "inside, some": mixed(30), "return, some": mixed(25), "new, some": mixed(9)}
	part.spread(costs, all, []*sites{whole, other, part})
	for kind, timed := range map[string]float64{"entry, some": 20, "inside, some": 30, "return, some": 25} {
		if c := costs[kind]; c.Time != timed || math.Abs(c.Count-skipped) > 1e-9 || c.Before != 7 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
	if _, known := costs["new, some"]; known || len(costs) != 3 {
		t.Errorf("known are %v", costs)
	}
	part.spread(costs, map[string]omis.Cost{}, nil)
	if len(costs) != 0 {
		t.Errorf("without others there are %v", costs)
	}
}
