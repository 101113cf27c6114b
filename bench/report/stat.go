package report

import (
	"cmp"
	"math"
	"slices"
)

// Stat sums up the rounds of one measurement.
type Stat struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
}

// Summary is the least and the median of some figures; nothing of none.
func Summary(rounds []float64) Stat {
	if len(rounds) == 0 {
		return Stat{}
	}
	return Stat{slices.Min(rounds), Median(rounds)}
}

// Median is the figure in the middle, the upper one of two.
func Median[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Less is what remains when what it takes without what is measured is taken off.
func (s Stat) Less(bare Stat) Stat { return Stat{s.Least - bare.Least, s.Median - bare.Median} }

// Added is what probes add to a call, from pairs of figures measured side by side, the
// probed one and the bare one. The least is that of the quickest call of each kind, not
// the least difference: that would be of a round in which the bare call was held up.
func Added(probed, bare []float64) Stat {
	if len(probed) == 0 || len(probed) != len(bare) {
		return Stat{}
	}
	each := make([]float64, len(probed))
	for i := range probed {
		each[i] = probed[i] - bare[i]
	}
	return Stat{slices.Min(probed) - slices.Min(bare), Median(each)}
}

// ratio is how many times as much the first is as the second; not a number where that
// says nothing: what is less than a tenth of the finest that is measured is nothing.
func ratio(a, b, finest float64) float64 {
	if min(a, b) < finest/10 {
		return math.NaN()
	}
	return a / b
}
