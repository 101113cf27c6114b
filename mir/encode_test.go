package mir

import (
	"math"
	"testing"

	"mirador/omis"
)

// TestCostsAreWrittenShort checks that costs have no digits that come from floating point
// arithmetic.
func TestCostsAreWrittenShort(t *testing.T) {
	for _, c := range []struct {
		cost float64
		want string
	}{
		{22.974349880140306, `cost="22.974"`},
		{18674.9775, `cost="18674.978"`},
		{10000, `cost="10000"`},
		{1.0000000000000002e16, `cost="10000000000000002"`},
	} {
		got, err := Marshal(&Probe{ID: "x", Placements: []omis.Placement{{Cost: c.cost, Bias: 7, Measured: true}}})
		if want := `<probe id="x" xmlns:gateway="urn:mirador:gateway"><gateway:placement ` + c.want + ` measured="true" bias="7"/></probe>` + "\n"; err != nil || string(got) != want {
			t.Errorf("%s (%v)\nwant %s", got, err, want)
		}
	}
}

// TestRounded checks that rounding twice is the same as rounding once, for numbers of any
// size.
func TestRounded(t *testing.T) {
	for _, v := range []float64{0, 0.0004, 0.0005, -1.23456, 22.974349880140306, 1e15 / 3, 1 << 53, 1e200 / 3, math.MaxFloat64} {
		if once := Rounded(v, 3); Rounded(once, 3) != once || math.Abs(once-v) > 0.0005000001 {
			t.Errorf("%v becomes %v, then %v", v, once, Rounded(once, 3))
		}
	}
}
