package plot

import (
	"fmt"
	"math"
)

// scale converts figures to positions. Axes are logarithmic, because the figures differ
// by powers of ten.
type scale struct {
	least    float64 // smaller figures are drawn as if they were least
	from, to float64 // decades
	begin    float64 // position of from
	length   float64 // negative: upwards
}

// newScale returns a scale of whole decades for all figures.
func newScale(a Axis, figures []float64, begin, length float64) scale {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range figures {
		if a.Least > 0 {
			v = max(v, a.Least)
		}
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	if a.Least > 0 {
		least = a.Least
	}
	if least > most {
		least, most = 1, 10
	}
	const hair = 1e-9 // in decades, more than a rounding error
	s := scale{a.Least, math.Floor(math.Log10(least) + hair), math.Ceil(math.Log10(most) - hair), begin, length}
	if s.to <= s.from {
		s.to = s.from + 1
	}
	return s
}

// at returns the position of a figure.
func (s scale) at(v float64) float64 {
	decade := s.from
	if v > 0 {
		decade = max(s.from, math.Log10(v))
	}
	return s.begin + s.length*(decade-s.from)/(s.to-s.from)
}

// ticks returns the powers of ten.
func (s scale) ticks() (list []float64) {
	for d := s.from; d <= s.to; d++ {
		list = append(list, math.Pow(10, d))
	}
	return list
}

// text formats a figure briefly.
func (k Kind) text(v float64) string {
	switch k {
	case Nanoseconds:
		return withUnit(v, []string{"ns", "µs", "ms", "s"})
	case Shares:
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	return withUnit(v, []string{"", "k", "M", "G"})
}

// withUnit divides by a thousand until the figure is short.
func withUnit(v float64, units []string) string {
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if units[i] == "" {
		return fmt.Sprintf("%.4g", v)
	}
	return fmt.Sprintf("%.4g %s", v, units[i])
}
