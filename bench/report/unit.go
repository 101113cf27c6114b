package report

import (
	"fmt"
	"math"
	"time"
)

// Unit is the unit of a row's figures.
type Unit string

const (
	Nanoseconds Unit = "ns"
	Number      Unit = "" // a multiple
	Percent     Unit = "%"
)

// Format omits meaningless digits.
func (u Unit) Format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == Percent:
		return fmt.Sprintf("%.2f %%", v)
	case u != Nanoseconds:
		return fmt.Sprintf("%.3g", v)
	case math.Abs(v) < 100:
		return fmt.Sprintf("%.1fns", v)
	}
	return shorten(time.Duration(v)).String()
}

// shorten rounds to four digits.
func shorten(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d.Abs() < 10_000*unit {
			return d.Round(unit)
		}
	}
}

// finest is the measuring resolution.
func (u Unit) finest() float64 {
	if u == Nanoseconds {
		return 1
	}
	return 0
}
