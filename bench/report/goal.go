package report

import (
	"fmt"
	"math"
)

// Goal is a condition for a figure. The zero Goal is no condition.
type Goal struct {
	kind  goalKind
	limit float64
}

type goalKind uint8

const (
	atMost  goalKind = iota + 1 // limit of the figure
	within                      // limit of the figure divided by the reference
	cheaper                     // least value of the reference divided by the figure
	near                        // limit of the relative difference from the reference
	beside                      // no condition; shows the ratio like cheaper
	atLeast                     // least value of the figure
)

// AtMost requires a figure up to limit, in the unit of the row.
func AtMost(limit float64) Goal { return Goal{atMost, limit} }

// AtLeast requires a figure from limit up, in the unit of the row.
func AtLeast(limit float64) Goal { return Goal{atLeast, limit} }

// Within requires a figure up to so many times the reference.
func Within(times float64) Goal { return Goal{within, times} }

// Cheaper requires that so many times the figure is at most the reference.
func Cheaper(times float64) Goal { return Goal{cheaper, times} }

// Near requires that the figure differs from the reference by at most this part of the
// reference.
func Near(part float64) Goal { return Goal{near, part} }

// Beside requires nothing; the row shows how many times as fast as the reference the
// figure is.
func Beside() Goal { return Goal{kind: beside} }

// asks reports whether the goal is a condition.
func (g Goal) asks() bool { return g.kind != 0 && g.kind != beside }

func (g Goal) text(u Unit) string {
	switch g.kind {
	case atMost:
		return "at most " + u.Format(g.limit)
	case atLeast:
		return "at least " + u.Format(g.limit)
	case within:
		return fmt.Sprintf("at most %.3g times", g.limit)
	case cheaper:
		return fmt.Sprintf("%.3g times as fast", g.limit)
	case near:
		return fmt.Sprintf("within %.3g %%", 100*g.limit)
	}
	return ""
}

// holds judges one figure. If the reference is not known, the result is Unknown.
func (g Goal) holds(ours float64, reference float64, known bool) Verdict {
	met := false
	switch {
	case !g.asks():
		return NoGoal
	case math.IsNaN(ours) || g.kind != atMost && g.kind != atLeast && !known:
		return Unknown
	case g.kind == atMost:
		met = ours <= g.limit
	case g.kind == atLeast:
		met = ours >= g.limit
	case g.kind == within:
		met = ours <= g.limit*reference
	case g.kind == cheaper:
		met = ours*g.limit <= reference
	case g.kind == near:
		met = math.Abs(ours-reference) <= g.limit*reference
	}
	if met {
		return Holds
	}
	return Fails
}

// Verdict says whether a goal is reached.
type Verdict string

const (
	NoGoal  Verdict = ""
	Holds   Verdict = "yes"
	Fails   Verdict = "no"
	Unknown Verdict = "unknown"
	AtBest  Verdict = "at best" // the least figures reach the goal, the median ones do not
)

// judge judges both figures of a row.
func (g Goal) judge(r Row) Verdict {
	if r.Why != "" {
		if !g.asks() {
			return NoGoal
		}
		return Unknown
	}
	known := r.Reference != nil
	var other Stat
	if known {
		other = *r.Reference
	}
	least, median := g.holds(r.Ours.Least, other.Least, known), g.holds(r.Ours.Median, other.Median, known)
	if least == Holds && median == Fails {
		return AtBest
	}
	return least
}
