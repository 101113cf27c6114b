package verdict

import (
	"math"
	"slices"
)

// Median returns the median of values; it is not a number if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// Centre returns the Hodges-Lehmann estimate of the centre of values, with the exact interval of
// Wilcoxon's signed-rank test. below and above are the errors at its lower and upper end. An end
// is infinite if there are too few values for so small an error: n values decide nothing below
// an error of 2^-n.
func Centre(values []float64, below, above float64) Interval {
	walsh := averages(values)
	i := Interval{Estimate: Median(walsh), Low: math.Inf(-1), High: math.Inf(1)}
	if k := rank(len(values), below); k > 0 {
		i.Low = walsh[k-1]
	}
	if k := rank(len(values), above); k > 0 {
		i.High = walsh[len(walsh)-k]
	}
	return i
}

// averages returns the averages of all pairs of values, each value with itself included, sorted.
func averages(values []float64) []float64 {
	walsh := make([]float64, 0, len(values)*(len(values)+1)/2)
	for i, v := range values {
		for _, w := range values[i:] {
			walsh = append(walsh, (v+w)/2)
		}
	}
	slices.Sort(walsh)
	return walsh
}

// rank returns the number of the average that bounds the interval of n values from one side,
// with the given error. It returns 0 if n values are too few for that error.
func rank(n int, alpha float64) int {
	// count[j] is the number of subsets of 1..n with the sum j. All subsets are equally likely
	// to be the ranks of the positive values if the true centre is 0.
	count := make([]float64, n*(n+1)/2+1)
	count[0] = 1
	for k := 1; k <= n; k++ {
		for j := len(count) - 1; j >= k; j-- {
			count[j] += count[j-k]
		}
	}
	most := alpha * math.Exp2(float64(n))
	k := 0
	for p := count[0]; p <= most && k+1 < len(count); p += count[k] {
		k++
	}
	return k
}
