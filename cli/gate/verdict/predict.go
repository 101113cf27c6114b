package verdict

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// LeastHistory is the least number of earlier values with which a new one is compared.
const LeastHistory = 5

// leastSpread is the least standard deviation of logarithms that is assumed, because few values may
// agree by chance.
const leastSpread = 0.003

// Predict returns by how much a value lies above the earlier ones, with the interval of a prediction: it
// takes into account how much single values vary. The values are logarithms, and are assumed to have a
// normal distribution. With fewer than LeastHistory earlier values the interval is infinite.
func Predict(earlier []float64, value, below, above float64) Interval {
	n := float64(len(earlier))
	if len(earlier) < LeastHistory {
		return Interval{Estimate: value - Median(earlier), Low: math.Inf(-1), High: math.Inf(1)}
	}
	sum, squares := 0.0, 0.0
	for _, v := range earlier {
		sum += v
	}
	for _, v := range earlier {
		squares += (v - sum/n) * (v - sum/n)
	}
	spread := max(math.Sqrt(squares/(n-1)), leastSpread) * math.Sqrt(1+1/n)
	t := stats.InvCDF(stats.TDist{V: n - 1})
	i := Interval{Estimate: value - sum/n}
	i.Low, i.High = i.Estimate-t(1-below)*spread, i.Estimate+t(1-above)*spread
	return i
}
