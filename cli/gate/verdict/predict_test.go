package verdict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPredict simulates histories: a new value lies outside of the interval as often as the errors say.
func TestPredict(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	above, below := 0, 0
	const histories = 4000
	for range histories {
		earlier := make([]float64, 8)
		for i := range earlier {
			earlier[i] = 0.02 * random.NormFloat64()
		}
		i := Predict(earlier, 0.02*random.NormFloat64(), 0.05, 0.05)
		if i.Low > 0 {
			above++
		}
		if i.High < 0 {
			below++
		}
	}
	for _, n := range []int{above, below} {
		if n < histories*35/1000 || n > histories*65/1000 {
			t.Errorf("%d of %d values lie outside at one side, 5 %% were expected", n, histories)
		}
	}
	if i := Predict([]float64{0, 0, 0, 0}, 1, 0.01, 0.01); i.Estimate != 1 || !math.IsInf(i.Low, -1) || !math.IsInf(i.High, 1) {
		t.Errorf("four values decide: %+v", i)
	}
	if i := Predict([]float64{0, 0, 0, 0, 0}, 0.05, 0.01, 0.01); i.Below(0.03) != Failed || i.Below(0.1) != Passed {
		t.Errorf("equal values: %+v", i)
	}
}
