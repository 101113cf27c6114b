package omis

import "testing"

// TestPreciseShare checks the dilation if the true cost is 1.5 times the known one: up to
// PreciseShare it is wrong by at most that factor, and beyond by more.
func TestPreciseShare(t *testing.T) {
	const factor, rest = 1.5, 1e6
	for _, share := range []float64{0.01, 0.1, 0.3, 0.399, 0.401, 0.5, 0.6} {
		reported := Spending{Inside: rest * share, CPU: rest}
		actual := Spending{Inside: factor * rest * share, CPU: rest}
		if off := actual.Dilation() / reported.Dilation(); off > factor != (share > PreciseShare) {
			t.Errorf("share %v: a dilation of %v is reported as %v", share, actual.Dilation(), reported.Dilation())
		}
	}
}
