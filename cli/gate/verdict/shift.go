package verdict

import (
	"math"
	"slices"
)

// Shift returns by how much the values of head lie above those of base: the Hodges-Lehmann
// estimate, the median of all differences, with the exact interval of the test of Mann and Whitney.
// The values of both are independent of each other, not pairs. below and above are the errors
// at the lower and upper end of the interval. An end is infinite if there are too few values.
func Shift(base, head []float64, below, above float64) Interval {
	differences := make([]float64, 0, len(base)*len(head))
	for _, b := range base {
		for _, h := range head {
			differences = append(differences, h-b)
		}
	}
	slices.Sort(differences)
	i := Interval{Estimate: Median(differences), Low: math.Inf(-1), High: math.Inf(1)}
	if k := rankOfTwo(len(base), len(head), below); k > 0 {
		i.Low = differences[k-1]
	}
	if k := rankOfTwo(len(base), len(head), above); k > 0 {
		i.High = differences[len(differences)-k]
	}
	return i
}

// rankOfTwo returns the number of the difference that bounds the interval from one side, with the
// given error. It returns 0 if there are too few values for that error.
func rankOfTwo(m, n int, alpha float64) int {
	count := arrangements(m, n)
	most, k := 0.0, 0
	for _, c := range count {
		most += c
	}
	for p := count[0]; p <= alpha*most && k+1 < len(count); p += count[k] {
		k++
	}
	return k
}

// arrangements returns how many of the orders of m and n values have j pairs in which the value of
// the second sample is the smaller one, by j. It is the Gaussian binomial coefficient, as a polynomial:
// the product of (1-x^(n+i))/(1-x^i) for i = 1..m.
func arrangements(m, n int) []float64 {
	count := make([]float64, m*n+1)
	count[0] = 1
	for i := 1; i <= m; i++ {
		for j := len(count) - 1; j >= n+i; j-- {
			count[j] -= count[j-n-i]
		}
		for j := i; j < len(count); j++ {
			count[j] += count[j-i]
		}
	}
	return count
}

// mostNeeded limits the search of Needed.
const mostNeeded = 1000

// Needed returns how many values of base are needed at least to judge that many values of head by
// Shift, 0 if no number suffices.
func Needed(head int, alpha float64) int {
	ways := 1.0
	for n := 1; n <= mostNeeded; n++ {
		if ways = ways * float64(n+head) / float64(n); alpha*ways >= 1 {
			return n
		}
	}
	return 0
}
