package gate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"golang.org/x/perf/benchmath"

	"mirador/bench/report"
	"mirador/cli/gate/verdict"
)

// draw returns starts at random, with replacement, whose head takes more by a part.
func draw(random *rand.Rand, from []start, n int, more float64) (starts []start) {
	for range n {
		s := from[random.IntN(len(from))]
		s.head *= 1 + more
		s.change = (1+s.change)*(1+more) - 1
		starts = append(starts, s)
	}
	return starts
}

// simulate judges gates on drawn starts, with the planned looks, and returns the share of each
// outcome.
func (b *bench) simulate(from []start, limit, more float64) map[verdict.Outcome]float64 {
	random := rand.New(rand.NewPCG(b.Seed, 1))
	plan, err := verdict.PlanFor(limit)
	if err != nil || len(from) == 0 {
		return map[verdict.Outcome]float64{verdict.Inconclusive: 1}
	}
	shares := map[verdict.Outcome]float64{}
	for range b.Gates {
		all := logarithms(draw(random, from, plan.Last(), more))
		c := &verdict.Change{Limit: limit}
		for _, look := range plan {
			c.Ratios = all[:look]
			plan.Look([]*verdict.Change{c}, look)
			if c.Outcome != "" {
				break
			}
		}
		if c.Outcome == "" {
			c.Outcome = verdict.Inconclusive
		}
		shares[c.Outcome] += 1 / float64(b.Gates)
	}
	return shares
}

// judges are the rules of other tools, on the values of both programs: whether they report that head is
// slower.
var judges = []struct {
	name   string
	slower func(base, head []float64) bool
}{
	{"benchstat: U test, p < 0.05", func(base, head []float64) bool {
		from, to := benchmath.NewSample(base, &benchmath.DefaultThresholds), benchmath.NewSample(head, &benchmath.DefaultThresholds)
		c := benchmath.AssumeNothing.Compare(from, to)
		return c.P < c.Alpha && verdict.Median(head) > verdict.Median(base)
	}},
	{"hyperfine: means apart by more than their deviations", func(base, head []float64) bool {
		from, to := moments(base), moments(head)
		ratio := to.mean / from.mean
		return ratio-ratio*math.Hypot(from.deviation/from.mean, to.deviation/to.mean) > 1
	}},
	{"t-test of head's median against base's values, p < 0.05", func(base, head []float64) bool {
		logs := make([]float64, len(base))
		for i, v := range base {
			logs[i] = math.Log(v)
		}
		return verdict.Predict(logs, math.Log(verdict.Median(head)), 0.05, 0.05).Low > 0
	}},
}

type moment struct{ mean, deviation float64 }

func moments(values []float64) (m moment) {
	n := float64(len(values))
	for _, v := range values {
		m.mean += v / n
	}
	for _, v := range values {
		m.deviation += (v - m.mean) * (v - m.mean) / (n - 1)
	}
	m.deviation = math.Sqrt(m.deviation)
	return m
}

// others judges the same starts by the rules of other tools, without a change and with one of five
// percent. Ours is the reference.
func (b *bench) others(from []start) {
	if len(from) == 0 {
		return
	}
	const effect = 0.05
	ours := b.simulate(from, 0.03, 0)[verdict.Failed]
	power := b.simulate(from, 0.03, effect)[verdict.Failed]
	for _, judge := range judges {
		random := rand.New(rand.NewPCG(b.Seed, 2))
		alarms, found := 0, 0
		for range b.Gates {
			if judge.slower(split(draw(random, from, 12, 0))) {
				alarms++
			}
			if judge.slower(split(draw(random, from, 12, effect))) {
				found++
			}
		}
		for _, row := range []struct {
			what      string
			n         int
			reference float64
		}{{"false alarms", alarms, ours}, {"5 % found", found, power}} {
			part := 100 * float64(row.n) / float64(b.Gates)
			b.table.Add(report.Row{What: fmt.Sprintf("%s, %s", judge.name, row.what), Unit: report.Percent, Ours: report.Stat{Least: part, Median: part}, Than: "our gate", Reference: &report.Stat{Least: 100 * row.reference, Median: 100 * row.reference}})
		}
	}
}

// split returns the values of both programs.
func split(starts []start) (base, head []float64) {
	for _, s := range starts {
		base, head = append(base, s.base), append(head, s.head)
	}
	return base, head
}
