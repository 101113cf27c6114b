package verdict

import (
	"fmt"
	"math"
	"slices"
)

// Plan says after how many starts a relative assertion is judged.
type Plan []int

// leastChange is the smallest change that can be asserted. Between builds of the same source the
// addresses of code alone change more.
const leastChange = 0.005

// PlanFor returns the looks for a limit on the change: 0.03 is 3 %. Smaller changes need more
// starts (doc/decisions/gate.md).
func PlanFor(change float64) (Plan, error) {
	switch {
	case change < leastChange:
		return nil, fmt.Errorf("a change of %g %% cannot be seen on any machine: the addresses of code alone change more; the smallest limit is %g %%", 100*change, 100*leastChange)
	case change < 0.03:
		return Plan{20, 40, 60}, nil
	}
	return Plan{9, 12}, nil
}

// Longest returns the plan with the most starts.
func Longest(plans ...Plan) Plan {
	return slices.MaxFunc(plans, func(a, b Plan) int { return a[len(a)-1] - b[len(b)-1] })
}

// Last returns the number of starts of the last look.
func (p Plan) Last() int { return p[len(p)-1] }

// share returns the part of the error alpha that the look at n starts may spend. Looks are
// dependent; to ignore that is conservative.
func (p Plan) share(alpha float64, n int) float64 {
	i := slices.Index(p, n)
	if i < 0 {
		return 0
	}
	before := 0.0
	if i > 0 {
		before = spent(alpha, float64(p[i-1])/float64(p.Last()))
	}
	return spent(alpha, float64(n)/float64(p.Last())) - before
}

// Change is a relative assertion while its starts are measured.
type Change struct {
	Limit  float64   // of the relative change: 0.03
	Ratios []float64 // the logarithm of head/base for each start
	Interval
	Outcome Outcome // "" until a look has decided
}

// limit returns the limit as a logarithm.
func (c *Change) limit() float64 { return math.Log1p(c.Limit) }

// Relative returns the interval as relative changes: 0.05 for 5 % slower.
func (c *Change) Relative() Interval {
	return Interval{Estimate: math.Expm1(c.Estimate), Low: math.Expm1(c.Low), High: math.Expm1(c.High)}
}

// Visible returns the relative change from which on this measurement fails reliably.
func (c *Change) Visible() float64 { return math.Expm1(c.limit() + 2*c.Half()) }

// Blind reports whether the noise is greater than the limit, so that no verdict was possible.
func (c *Change) Blind() bool { return c.Half() > c.limit() }

// Look judges the assertions that are undecided after n starts. The errors of failures are
// corrected by Holm's method: the most significant of m assertions is judged with an m-th of
// the error, the next with an (m-1)-th, and so on. A gate passes only if all assertions pass,
// so passes need no correction.
func (p Plan) Look(all []*Change, n int) {
	failed := 0
	for _, c := range all {
		if c.Outcome == Failed {
			failed++
		}
	}
	for again := true; again; {
		again = false
		for _, c := range all {
			if c.Outcome != "" || len(c.Ratios) == 0 {
				continue
			}
			c.Interval = Centre(c.Ratios, p.share(Error/float64(len(all)-failed), n), p.share(Error, n))
			if c.Outcome = c.Below(c.limit()); c.Outcome == Inconclusive {
				c.Outcome = ""
			}
			if c.Outcome == Failed {
				failed++
				again = true
			}
		}
	}
}

// Decided reports whether every assertion has its outcome.
func Decided(all []*Change) bool {
	return !slices.ContainsFunc(all, func(c *Change) bool { return c.Outcome == "" })
}
