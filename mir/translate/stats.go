package translate

import (
	"fmt"
	"strconv"
	"strings"

	"mirador/mir"
	"mirador/omis/program"
)

// Stats summarizes measured values. They are whole numbers: counts, or times in nanoseconds.
type Stats struct {
	N    int64  `json:"n"`
	Last uint64 `json:"last"`
	Min  uint64 `json:"min"`
	Max  uint64 `json:"max"`
	// Sum and Squares (the sum of the squares) are exact, because a variance that is small
	// compared to the values is lost in their rounding errors. Squares is zero if the monitor was
	// not asked for it.
	Sum     program.Uint128 `json:"sum"`
	Squares program.Uint128 `json:"squares"`
	// Signed says that Last, Min, Max and Sum are differences of a level, in two's complement.
	Signed bool `json:"signed,omitempty"`

	Sampled Sampled              `json:"sampled,omitzero"` // if only some executions are timed
	Spread  program.Distribution `json:"spread,omitempty"` // if percentiles are requested
	Paired  Paired               `json:"paired,omitzero"`  // of a region from one unit to another
	// Whole has the executions behind values that are measured at fixed times; nil: the values are executions.
	Whole *Whole `json:"whole,omitempty"`

	zero bool // it is a count; if no value was measured, the count and the sum are 0
}

// counted returns the statistics of n executions, each of which has measured 1: what the count
// is at its end minus what it is at its beginning (MIR 4). The last value is the count itself,
// because it would otherwise always be 1.
func counted(n uint64) Stats {
	if n == 0 {
		return Stats{zero: true}
	}
	all := program.Uint128{Lo: n}
	return Stats{N: int64(n), Last: n, Min: 1, Max: 1, Sum: all, Squares: all}
}

// last returns the last value. ok is false if there is none.
func (s *Stats) last() (v uint64, ok bool) { return s.Last, s.N > 0 || s.zero }

// Add adds a value.
func (s *Stats) Add(v uint64) { s.Merge(single(v)) }

// single returns the statistics of one value.
func single(v uint64) Stats {
	sum := program.Uint128{Lo: v}
	return Stats{N: 1, Last: v, Min: v, Max: v, Sum: sum, Squares: sum.Times(v)}
}

// signed returns the statistics of one difference of a level.
func signed(v int64) Stats {
	size := uint64(max(v, -v))
	return Stats{
		N: 1, Last: uint64(v), Min: uint64(v), Max: uint64(v), Signed: true,
		Sum: program.Uint128{Hi: uint64(v >> 63), Lo: uint64(v)}, Squares: program.Uint128{Lo: size}.Times(size),
	}
}

// below compares two values.
func (s *Stats) below(a, b uint64) bool {
	if s.Signed {
		return int64(a) < int64(b)
	}
	return a < b
}

// total returns the size of the sum, and whether it is negative.
func (s *Stats) total() (size program.Uint128, negative bool) { return s.magnitude(s.Sum) }

func (s *Stats) magnitude(v program.Uint128) (size program.Uint128, negative bool) {
	if !s.Signed || int64(v.Hi) >= 0 {
		return v, false
	}
	return program.Uint128{Hi: ^v.Hi, Lo: ^v.Lo}.Add(program.Uint128{Lo: 1}), true
}

// number formats one of the values.
func (s *Stats) number(v uint64, u unit) string {
	wide := program.Uint128{Lo: v}
	if s.Signed {
		wide.Hi = uint64(int64(v) >> 63)
	}
	return s.exact(wide, u)
}

func (s *Stats) exact(v program.Uint128, u unit) string {
	size, negative := s.magnitude(v)
	if negative {
		return "-" + u.exact(size)
	}
	return u.exact(size)
}

// Merge adds the values of o, as if they were measured after the values of s.
func (s *Stats) Merge(o Stats) {
	s.Sampled = s.Sampled.plus(o.Sampled)
	s.Spread = joined(s.Spread, o.Spread)
	s.Paired = Paired{s.Paired.Begun + o.Paired.Begun, s.Paired.Ended + o.Paired.Ended}
	s.Whole = s.Whole.plus(o.Whole)
	s.zero = s.zero || o.zero
	if o.N == 0 {
		return
	}
	if s.N == 0 || o.below(o.Min, s.Min) {
		s.Min = o.Min
	}
	if s.N == 0 || o.below(s.Max, o.Max) {
		s.Max = o.Max
	}
	s.Signed = o.Signed
	s.N += o.N
	s.Last = o.Last
	s.Sum, s.Squares = s.Sum.Add(o.Sum), s.Squares.Add(o.Squares)
}

// squaredDeviations returns the sum of the squared differences from the mean.
func (s Stats) squaredDeviations() float64 {
	size, _ := s.total()
	return program.SquaredDeviations(uint64(s.N), size, s.Squares)
}

// unit is the unit of the values of a metric in documents.
type unit float64

const (
	plain       unit = 1
	millisecond unit = 1e6 // values are in nanoseconds, or in millionths
)

func (m Metric) unit() unit {
	if m.Unit == "ms" || m.millionths {
		return millisecond
	}
	return plain
}

// text returns a statistic as a decimal, "" if there are no values. The variance is the
// population variance, because every value was measured.
func (s Stats) text(f mir.Function, u unit) string {
	if s.N == 0 {
		if s.zero && (f == mir.Last || f == mir.Sum) {
			return u.exact(program.Uint128{})
		}
		return ""
	}
	n := float64(s.N)
	switch f {
	case mir.Sum:
		if s.Sampled.Begun > 0 {
			return u.rounded(s.Sampled.estimate())
		}
		return s.exact(s.Sum, u)
	case mir.Average:
		size, negative := s.total()
		if negative {
			n = -n
		}
		return significant(size.Float() / n / float64(u))
	case mir.Maximum:
		return s.number(s.Max, u)
	case mir.Minimum:
		return s.number(s.Min, u)
	case mir.Variance:
		return significant(s.squaredDeviations() / n / float64(u*u))
	}
	return s.number(s.Last, u)
}

// exact formats a whole number of nanoseconds or of another unit.
func (u unit) exact(v program.Uint128) string {
	switch {
	case v.Hi > 0:
		return mir.Decimal(v.Float() / float64(u))
	case u == plain:
		return strconv.FormatUint(v.Lo, 10)
	}
	text := fmt.Sprintf("%d.%06d", v.Lo/1e6, v.Lo%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// rounded formats an estimate without digits below the nanosecond.
func (u unit) rounded(v float64) string {
	const precise = 1 << 53
	if u == millisecond && v >= 0 && v < precise {
		return u.exact(program.Uint128{Lo: uint64(v + 0.5)})
	}
	return mir.Decimal(v / float64(u))
}

// significant formats a statistic, which may be finer than the values, without the digits that
// come from floating point arithmetic.
func significant(v float64) string {
	text := strconv.FormatFloat(v, 'e', 11, 64)
	v, _ = strconv.ParseFloat(text, 64) // FormatFloat wrote it
	return mir.Decimal(v)
}
