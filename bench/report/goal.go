package report

import (
	"fmt"
	"math"
)

// Goal is what a figure is to reach. The zero goal asks for nothing.
type Goal struct {
	kind  goalKind
	limit float64
}

type goalKind uint8

const (
	atMost  goalKind = iota + 1 // the figure itself
	within                      // the figure, as a multiple of the reference
	cheaper                     // the reference, as a multiple of the figure
	near                        // the figure, by how much it differs from the reference
	beside                      // nothing; the ratio is that of cheaper
)

// AtMost asks for a figure no greater than limit, in the unit of the row.
func AtMost(limit float64) Goal { return Goal{atMost, limit} }

// Within asks for a figure no greater than so many times the reference.
func Within(times float64) Goal { return Goal{within, times} }

// Cheaper asks for a figure that so many times is no greater than the reference.
func Cheaper(times float64) Goal { return Goal{cheaper, times} }

// Near asks for a figure that differs from the reference by no more than such a part of it.
func Near(part float64) Goal { return Goal{near, part} }

// Beside asks for nothing either, and has the ratio say how many times as fast as the
// reference it is.
func Beside() Goal { return Goal{kind: beside} }

// asks tells whether there is anything to be reached.
func (g Goal) asks() bool { return g.kind != 0 && g.kind != beside }

func (g Goal) text(u Unit) string {
	switch g.kind {
	case atMost:
		return "at most " + u.Format(g.limit)
	case within:
		return fmt.Sprintf("at most %.3g times", g.limit)
	case cheaper:
		return fmt.Sprintf("%.3g times as fast", g.limit)
	case near:
		return fmt.Sprintf("within %.3g %%", 100*g.limit)
	}
	return ""
}

// holds judges one figure. Where there is no reference to be compared with, it is not
// known whether the goal holds.
func (g Goal) holds(ours float64, reference float64, known bool) Verdict {
	met := false
	switch {
	case !g.asks():
		return NoGoal
	case math.IsNaN(ours) || g.kind != atMost && !known:
		return Unknown
	case g.kind == atMost:
		met = ours <= g.limit
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
	AtBest  Verdict = "at best" // by the least figures, but not by the median ones
)

// judge takes both figures of a row.
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
