package verdict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCentre compares intervals with published tables: of n values, rank k bounds the interval.
func TestCentre(t *testing.T) {
	for _, test := range []struct {
		n     int
		alpha float64
		want  int // the critical value of Wilcoxon's table plus one
	}{{6, 0.01, 0}, {7, 0.01, 1}, {8, 0.01, 2}, {10, 0.01, 6}, {12, 0.01, 10}, {20, 0.01, 44}, {10, 0.05, 11}, {20, 0.025, 53}} {
		if got := rank(test.n, test.alpha); got != test.want {
			t.Errorf("rank(%d, %g) = %d, want %d", test.n, test.alpha, got, test.want)
		}
	}
	i := Centre([]float64{1, 2, 3, 4, 5, 6, 7, 100}, 0.01, 0.01)
	if i.Estimate != 4.75 && (i.Estimate < 4 || i.Estimate > 6) || i.Low < 1 || i.High > 100 {
		t.Errorf("%+v", i)
	}
	few := Centre([]float64{1, 1, 1}, 0.01, 0.01)
	if !math.IsInf(few.Low, -1) || !math.IsInf(few.High, 1) || few.Below(5) != Inconclusive {
		t.Errorf("three values decide: %+v", few)
	}
	same := Centre([]float64{3, 3, 3, 3, 3, 3, 3, 3}, 0.01, 0.01)
	if same.Below(3) != Passed || same.Above(3) != Passed || same.Below(2) != Failed || same.Above(4) != Failed {
		t.Errorf("equal values: %+v", same)
	}
	if !math.IsNaN(Median(nil)) || Median([]float64{4, 1, 3, 2}) != 2.5 {
		t.Error("wrong medians")
	}
}

func TestWorst(t *testing.T) {
	if Worst() != Passed || Worst(Passed, Inconclusive) != Inconclusive || Worst(Inconclusive, Failed, Passed) != Failed {
		t.Error("wrong outcomes of several assertions")
	}
}

// TestSpent checks that the looks spend the whole error, and little at the first.
func TestSpent(t *testing.T) {
	for _, p := range []Plan{{9, 12}, {20, 40, 60}} {
		sum := 0.0
		for _, n := range p {
			if s := p.share(Error, n); s <= 0 {
				t.Errorf("the look at %d spends %g", n, s)
			} else {
				sum += s
			}
		}
		if math.Abs(sum-Error) > 1e-12 || p.share(Error, p[0]) > Error/3 || p.share(Error, 1) != 0 {
			t.Errorf("the plan %v spends %g, first %g", p, sum, p.share(Error, p[0]))
		}
	}
	if _, err := PlanFor(0.001); err == nil {
		t.Error("a change of 0.1 % is accepted")
	}
}

// rates are the parts of simulated gates with each outcome.
type rates struct{ failed, passed, inconclusive float64 }

// simulate runs gates on starts whose logarithmic ratios have a normal distribution, in which
// one start in twenty is disturbed three times as much.
func simulate(seed uint64, gates, metrics int, limit, effect, noise float64) (r rates) {
	random := rand.New(rand.NewPCG(seed, 1))
	plan, _ := PlanFor(limit)
	for range gates {
		all := make([]*Change, metrics)
		for i := range all {
			all[i] = &Change{Limit: limit}
		}
		n := 0
		for _, look := range plan {
			for ; n < look; n++ {
				for _, c := range all {
					d := random.NormFloat64() * noise
					if random.IntN(20) == 0 {
						d *= 3
					}
					c.Ratios = append(c.Ratios, math.Log1p(effect)+d)
				}
			}
			plan.Look(all, n)
		}
		outcomes := make([]Outcome, metrics)
		for i, c := range all {
			outcomes[i] = c.Outcome
		}
		switch Worst(outcomes...) {
		case Failed:
			r.failed++
		case Passed:
			r.passed++
		default:
			r.inconclusive++
		}
	}
	n := float64(gates)
	return rates{r.failed / n, r.passed / n, r.inconclusive / n}
}

// TestRates simulates whole gates, with their looks and corrections. The noise is what the
// medians of starts had on a machine with another load (doc/decisions/gate.md).
func TestRates(t *testing.T) {
	const gates = 1000
	for _, test := range []struct {
		name                 string
		metrics              int
		limit, effect, noise float64
		ok                   func(rates) bool
	}{
		{"no change", 1, 0.03, 0, 0.006, func(r rates) bool { return r.failed == 0 && r.passed > 0.98 }},
		{"no change, five metrics", 5, 0.03, 0, 0.006, func(r rates) bool { return r.failed == 0 && r.passed > 0.95 }},
		{"five percent", 1, 0.03, 0.05, 0.006, func(r rates) bool { return r.failed > 0.97 && r.passed == 0 }},
		{"exactly the limit", 1, 0.03, 0.03, 0.006, func(r rates) bool { return r.failed < 0.02 && r.passed < 0.02 }},
		{"exactly the limit, five metrics", 5, 0.03, 0.03, 0.006, func(r rates) bool { return r.failed < 0.02 }},
		{"much noise", 1, 0.03, 0, 0.2, func(r rates) bool { return r.failed < 0.02 && r.inconclusive > 0.9 }},
		{"no change, one percent", 1, 0.01, 0, 0.006, func(r rates) bool { return r.failed == 0 && r.passed > 0.98 }},
		{"two percent of one", 1, 0.01, 0.02, 0.006, func(r rates) bool { return r.failed > 0.98 }},
	} {
		if r := simulate(7, gates, test.metrics, test.limit, test.effect, test.noise); !test.ok(r) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestBlind checks that noise that hides the limit is recognised.
func TestBlind(t *testing.T) {
	c := &Change{Limit: 0.03, Ratios: []float64{-0.2, 0.2, -0.1, 0.1, 0.3, -0.3, 0.05, -0.05, 0}}
	Plan{9}.Look([]*Change{c}, 9)
	if c.Outcome != "" || !c.Blind() || c.Visible() < 0.2 {
		t.Errorf("%+v, visible from %g", c, c.Visible())
	}
}
