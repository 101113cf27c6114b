package verdict

import (
	"math"
	"testing"
)

// TestShift compares the interval with published tables, and checks samples without variance.
func TestShift(t *testing.T) {
	for _, test := range []struct {
		m, n  int
		alpha float64
		want  int // the critical value of the table of Mann and Whitney plus one
	}{{4, 4, 0.01, 0}, {5, 5, 0.01, 2}, {10, 10, 0.025, 24}, {8, 6, 0.05, 11}, {20, 20, 0.01, 115}, {1, 98, 0.01, 0}, {1, 99, 0.01, 1}} {
		if got := rankOfTwo(test.m, test.n, test.alpha); got != test.want {
			t.Errorf("rank of %d and %d values at %g: %d, want %d", test.m, test.n, test.alpha, got, test.want)
		}
	}
	same := []float64{2, 2, 2, 2, 2}
	if i := Shift(same, []float64{3, 3, 3, 3, 3}, 0.01, 0.01); i.Estimate != 1 || i.Below(0.5) != Failed || i.Below(1.5) != Passed {
		t.Errorf("without variance: %+v", i)
	}
	if i := Shift(same, []float64{3}, 0.01, 0.01); i.Estimate != 1 || !math.IsInf(i.Low, -1) || i.Below(0.5) != Inconclusive {
		t.Errorf("one value decides: %+v", i)
	}
	if i := Shift(nil, nil, 0.01, 0.01); !math.IsNaN(i.Estimate) || i.Below(1) != Inconclusive {
		t.Errorf("no values: %+v", i)
	}
	for head, want := range map[int]int{1: 99, 2: 13, 3: 7, 5: 4, 100: 1} {
		if got := Needed(head, 0.01); got != want {
			t.Errorf("%d values need %d, want %d", head, got, want)
		}
	}
}
