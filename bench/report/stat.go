package report

import (
	"cmp"
	"math"
	"slices"
)

// Stat summarises the rounds of one measurement.
type Stat struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
}

// Summary returns the least and the median of some figures, the zero Stat if there are
// none.
func Summary(rounds []float64) Stat {
	if len(rounds) == 0 {
		return Stat{}
	}
	return Stat{slices.Min(rounds), Median(rounds)}
}

// Median returns the median, the greater one of two.
func Median[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Added returns what probes add to a call, from pairs of a probed and a bare figure
// measured next to each other. Least is the difference of the least figures, not the
// least difference, which would come from a round in which the bare call was disturbed.
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

// ratio returns a/b, or NaN if either is meaningless because it is less than a tenth of
// the measuring resolution.
func ratio(a, b, finest float64) float64 {
	if min(a, b) < finest/10 {
		return math.NaN()
	}
	return a / b
}
