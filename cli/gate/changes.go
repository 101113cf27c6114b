package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"mirador/cli/gate/measure"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// duet has what was measured in the starts so far. In each start both programs are started anew and
// run by turns.
type duet struct {
	limits  []request.Limit
	changes []*verdict.Change
	pairs   [][]measure.Pair // by limit, then by start
	plan    verdict.Plan
}

// judgeChanges measures relative limits: start by start, until the planned looks have decided all
// or the time is over.
func (g *Gate) judgeChanges(ctx context.Context, rep *report.Report, limits []request.Limit) error {
	if len(limits) == 0 {
		return nil
	}
	d, err := newDuet(limits)
	if err != nil {
		return err
	}
	for n := 1; n <= d.plan.Last() && !verdict.Decided(d.changes); n++ {
		g.Runner.Note("start %d of at most %d", n, d.plan.Last())
		pairs, err := g.Runner.Start(ctx, g.Base, g.Head, limits)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && n > 1 {
			g.Runner.Remark("%v: %d of %d starts were measured", context.Cause(ctx), n-1, d.plan.Last())
			break
		}
		if err != nil {
			return err
		}
		d.add(pairs, n)
	}
	for i := range limits {
		r := d.result(i)
		if r.Outcome == verdict.Failed && !g.LayoutFails {
			if err := g.excuse(ctx, &r); err != nil {
				return err
			}
		}
		if r.Outcome == verdict.Failed {
			g.explain(ctx, &r)
			if slowest := g.Runner.Slowest(i); len(slowest) > 0 {
				r.Reason += ". The slowest round " + strings.Join(slowest, "; ")
			}
		}
		g.remarkBias(&r)
		rep.Results = append(rep.Results, r)
	}
	if text := g.Runner.Weather(); text != "" {
		g.Runner.Remark("%s", text)
	}
	return nil
}

// explain adds to the reason of a failure what head does more in each call. The failure remains one if
// it cannot be explained.
func (g *Gate) explain(ctx context.Context, r *report.Result) {
	reasons, err := g.Runner.Explain(ctx, g.Base, g.Head, r.Region)
	switch {
	case err != nil:
		g.Runner.Remark("The failure of %s could not be explained: %v", r.Region, err)
	case len(reasons) > 0:
		r.Reason += ". In each call of head: " + strings.Join(reasons, "; ")
	default:
		r.Reason += ". It calls the same functions, which take the same time, so the time is spent in its own code"
	}
}

// explainNumber adds to the reason of a failed exact or absolute limit what the number consists of.
func (g *Gate) explainNumber(ctx context.Context, r *report.Result, l request.Limit) {
	var reasons []string
	var err error
	what := "Of these: "
	switch {
	case l.Kind == request.Absolute && l.Region != "" && l.Max != nil:
		what = "In each call of head: "
		reasons, err = g.Runner.Spent(ctx, g.Head, l.Region)
	case l.Compared() && g.Stable == nil:
		reasons, err = g.Runner.Parts(ctx, &g.Base, g.Head, l)
	default:
		reasons, err = g.Runner.Parts(ctx, nil, g.Head, l)
	}
	if err != nil {
		g.Runner.Remark("The failure of %s could not be explained: %v", r.Name, err)
	} else if len(reasons) > 0 {
		r.Reason += ". " + what + strings.Join(reasons, "; ")
	}
}

// remarkBias adds a remark if the probe adds more than a twentieth to the calls.
func (g *Gate) remarkBias(r *report.Result) {
	const small = 0.05
	if added := float64(g.Runner.Bias(r.Region)) / 1e6; r.Base != nil && added > small**r.Base {
		g.Runner.Remark("The probe adds %s to each call of %s, which was subtracted from both sides: it is a great part of so short a time.", report.Amount(added, "ms"), r.Region)
	}
}

func newDuet(limits []request.Limit) (*duet, error) {
	d := &duet{limits: limits, pairs: make([][]measure.Pair, len(limits))}
	var plans []verdict.Plan
	for _, l := range limits {
		p, err := verdict.PlanFor(l.Change)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
		d.changes = append(d.changes, &verdict.Change{Limit: l.Change})
	}
	d.plan = verdict.Longest(plans...)
	return d, nil
}

// add adds a start. A start in which a program made too few calls counts, but has no ratio.
func (d *duet) add(pairs []measure.Pair, n int) {
	for i, p := range pairs {
		if d.pairs[i] = append(d.pairs[i], p); !math.IsNaN(p.Ratio) {
			d.changes[i].Ratios = append(d.changes[i].Ratios, p.Ratio)
		}
	}
	if slices.Contains(d.plan, n) {
		d.plan.Look(d.changes, n)
	}
}

// result judges one limit after all starts.
func (d *duet) result(i int) report.Result {
	r, c := resultOf(d.limits[i]), d.changes[i]
	r.Samples, r.Outcome = len(c.Ratios), c.Outcome
	r.BaseValues, r.HeadValues = d.values(i)
	for _, ratio := range c.Ratios {
		r.Changes = append(r.Changes, math.Expm1(ratio))
	}
	r.Base, r.Head = report.Finite(verdict.Median(r.BaseValues)), report.Finite(verdict.Median(r.HeadValues))
	if c.Estimate == 0 && c.Low == 0 && c.High == 0 { // no look was reached
		c.Interval = verdict.Centre(c.Ratios, verdict.Error, verdict.Error)
	}
	r.SetChange(c.Relative(), c.Visible())
	bias, biased := d.bias(i)
	switch {
	case biased:
		r.Outcome = verdict.Inconclusive
		r.Reason = fmt.Sprintf("this machine prefers one of two equal processes by %s, so it cannot see a change of %s", report.Percent(bias), report.Percent(c.Limit))
	case r.Outcome == verdict.Failed:
		r.Reason = fmt.Sprintf("head takes %s more than base, the limit is %s; smaller changes are found reliably from %s on", report.Percent(c.Relative().Estimate), report.Percent(c.Limit), report.Percent(c.Visible()))
	case r.Outcome == verdict.Passed:
		r.Reason = fmt.Sprintf("this measurement fails reliably from %s on", report.Percent(c.Visible()))
	case c.Blind():
		r.Outcome = verdict.Inconclusive
		r.Reason = fmt.Sprintf("this machine cannot see a change of %s: the interval is wider than the limit, with %d starts; use a quieter machine, a greater limit or a function that takes longer", report.Percent(c.Limit), r.Samples)
	default:
		r.Outcome = verdict.Inconclusive
		r.Reason = fmt.Sprintf("the change is too near to the limit to judge it by %d starts; a change is found reliably from %s on", r.Samples, report.Percent(c.Visible()))
	}
	return r
}

// values returns the values of both programs in each start that has a ratio.
func (d *duet) values(i int) (base, head []float64) {
	for _, p := range d.pairs[i] {
		if !math.IsNaN(p.Ratio) {
			base, head = append(base, p.Base), append(head, p.Head)
		}
	}
	return base, head
}

// bias compares base with a copy of it, and reports whether the difference is real and greater
// than a third of the limit.
func (d *duet) bias(i int) (change float64, biased bool) {
	var ratios []float64
	for _, p := range d.pairs[i] {
		if !math.IsNaN(p.Bias) {
			ratios = append(ratios, p.Bias)
		}
	}
	of := verdict.Centre(ratios, verdict.Error, verdict.Error)
	change = math.Expm1(of.Estimate)
	return change, (of.Low > 0 || of.High < 0) && math.Abs(change) > d.limits[i].Change/3
}

// excuse makes a failure inconclusive if the code is the same and has only moved.
func (g *Gate) excuse(ctx context.Context, r *report.Result) error {
	moved, err := g.Runner.Moved(ctx, g.Base, g.Head, r.Region)
	if err != nil {
		g.Runner.Remark("the code of %s cannot be compared: %v", r.Region, err)
	}
	if moved {
		r.Outcome = verdict.Inconclusive
		r.Reason = fmt.Sprintf("same code, moved: %s and what it calls consist of the same instructions, at other addresses within a cache line, which alone changes times (here by %s); --layout-fails makes this a failure", r.Region, report.Percent(*r.Change))
	}
	return ctx.Err()
}
