package history

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// Segment is a part of a series without a change: the points from index From up to To, without To.
type Segment struct {
	From, To int
	Mean     float64
	Change   float64 // of the mean against the segment before; 0 for the first
}

const (
	// significant is the greatest probability that a change point is chance, by the t-test.
	significant = 0.001
	// leastChange is the smallest relative change that is of interest.
	leastChange = 0.01
	// leastPoints is the least length of a segment.
	leastPoints = 3
)

// Divide divides a series at its change points: E-divisive means, a recursive division where the
// energy distance of both parts is greatest, if a t-test finds their means different.
func Divide(values []float64) (segments []Segment) {
	if len(values) == 0 {
		return nil
	}
	for _, to := range append(divide(values, 0), len(values)) {
		s := Segment{To: to}
		if n := len(segments); n > 0 {
			s.From = segments[n-1].To
		}
		s.Mean = mean(values[s.From:s.To])
		if n := len(segments); n > 0 && segments[n-1].Mean != 0 {
			s.Change = s.Mean/segments[n-1].Mean - 1
		}
		segments = append(segments, s)
	}
	return segments
}

// divide returns the change points of a part of a series that begins at an offset.
func divide(values []float64, offset int) (points []int) {
	at := furthest(values)
	if at == 0 || !differ(values[:at], values[at:]) {
		return nil
	}
	points = append(divide(values[:at], offset), offset+at)
	return append(points, divide(values[at:], offset+at)...)
}

// furthest returns the division with the greatest energy distance between both parts, 0 if the
// values are too few.
func furthest(values []float64) (at int) {
	n := len(values)
	// The sums of the distances between all values of the first part, and between all of the second.
	within, after := 0.0, 0.0
	for i := range values {
		after += distances(values[i], values[i+1:])
	}
	most, between := -1.0, 0.0
	for i := range n {
		// Value i moves from the second part to the first one.
		toFirst, toSecond := distances(values[i], values[:i]), distances(values[i], values[i+1:])
		within, after = within+toFirst, after-toSecond
		between += toSecond - toFirst
		first, second := float64(i+1), float64(n-i-1)
		if i+1 < leastPoints || n-i-1 < leastPoints {
			continue
		}
		energy := 2*between/(first*second) - 2*within/(first*(first-1)) - 2*after/(second*(second-1))
		if q := energy * first * second / (first + second); q > most {
			most, at = q, i+1
		}
	}
	return at
}

func distances(v float64, from []float64) (sum float64) {
	for _, w := range from {
		sum += math.Abs(v - w)
	}
	return sum
}

// differ reports whether the means of two samples differ by more than chance, and by more than the
// least change.
func differ(a, b []float64) bool {
	before, after := mean(a), mean(b)
	if math.Abs(after-before) <= leastChange*math.Abs(before) {
		return false
	}
	n, m := float64(len(a)), float64(len(b))
	pooled := (squares(a, before) + squares(b, after)) / (n + m - 2)
	if pooled == 0 {
		return true // such as numbers of calls, which do not vary
	}
	t := math.Abs(after-before) / math.Sqrt(pooled*(1/n+1/m))
	return 2*(1-stats.TDist{V: n + m - 2}.CDF(t)) < significant
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func squares(values []float64, centre float64) (sum float64) {
	for _, v := range values {
		sum += (v - centre) * (v - centre)
	}
	return sum
}
