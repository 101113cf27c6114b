// Package gate judges programs by a gate file: it measures them under a gateway and returns the
// verdicts. Only the command line imports it. One goroutine runs a gate; see measure for the
// processes that it starts.
package gate

import (
	"context"
	"fmt"
	"time"

	"mirador/cli/gate/history"
	"mirador/cli/gate/measure"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// Gate is what to judge.
type Gate struct {
	Name       string // of the file
	File       *request.File
	Base, Head measure.Side
	// LayoutFails also fails a gate whose code has only moved.
	LayoutFails bool
	// Stable are the values of the history's last stable segment, by the names of series; nil: head is
	// compared with Base.
	Stable map[string][]float64
	Runner *measure.Runner
}

// Run measures and judges. An error means that the gate could not be judged.
func (g *Gate) Run(ctx context.Context) (*report.Report, error) {
	begun := time.Now()
	rep := &report.Report{Gate: g.Name}
	values, changes := append(g.File.Of(request.Exact), g.File.Of(request.Absolute)...), g.File.Of(request.Relative)
	if g.Stable != nil {
		values, changes = append(values, changes...), nil
	}
	if err := g.judgeValues(ctx, rep, values); err != nil {
		return nil, err
	}
	if err := g.judgeChanges(ctx, rep, changes); err != nil {
		return nil, err
	}
	for i := range rep.Results {
		g.place(&rep.Results[i])
	}
	rep.Notes = g.Runner.Remarks
	rep.Seconds = time.Since(begun).Seconds()
	rep.Conclude()
	return rep, nil
}

// place sets where the unit of a result is in the source.
func (g *Gate) place(r *report.Result) {
	p := g.Runner.Places[r.Region]
	r.File, r.Line = p.File, p.Line
}

// judgeValues measures exact and absolute limits. Base runs too if some exact limit needs it.
func (g *Gate) judgeValues(ctx context.Context, rep *report.Report, limits []request.Limit) error {
	if len(limits) == 0 {
		return nil
	}
	head, err := g.Runner.Values(ctx, g.Head, limits)
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	var compared []request.Limit
	for _, l := range limits {
		if l.Compared() {
			compared = append(compared, l)
		}
	}
	base, err := g.baseOf(ctx, compared)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	for i, l := range limits {
		var other []measure.Value
		if l.Compared() {
			other, base = base[0], base[1:]
		}
		result := judge(l, head[i], other)
		if result.Outcome == verdict.Failed {
			g.explainNumber(ctx, &result, l)
		}
		rep.Results = append(rep.Results, result)
	}
	return nil
}

// baseOf returns the values with which those of head are compared.
func (g *Gate) baseOf(ctx context.Context, limits []request.Limit) (values [][]measure.Value, err error) {
	if len(limits) == 0 || g.Stable == nil {
		if len(limits) > 0 {
			values, err = g.Runner.Values(ctx, g.Base, limits)
		}
		return values, err
	}
	for _, l := range limits {
		values = append(values, valuesOf(g.Stable[history.NameOf(&l)]))
	}
	return values, nil
}

// judge judges a limit. Limits on the change of a time between two programs are for judgeChanges.
func judge(l request.Limit, head, base []measure.Value) report.Result {
	r := resultOf(l)
	r.HeadValues, r.BaseValues = numbers(head), numbers(base)
	switch {
	case l.Kind == request.Absolute:
		judgeAbsolute(&r, l, head)
	case l.Compared() && len(base) == 0:
		r.Head, r.Outcome = report.Finite(verdict.Median(r.HeadValues)), verdict.Inconclusive
		r.Reason = "the history has no value to compare with: run the gate on earlier commits with the same --store"
	case l.Kind == request.Relative:
		judgePrediction(&r, l)
	default:
		judgeExact(&r, l, head, base)
	}
	return r
}

func numbers(values []measure.Value) (list []float64) {
	for _, v := range values {
		list = append(list, v.Value)
	}
	return list
}

func resultOf(l request.Limit) report.Result {
	name := history.NameOf(&l)
	return report.Result{Name: name, Number: l.Number, Kind: string(l.Kind), Region: l.Region + l.Benchmark, Metric: l.Metric, Of: l.Of.String(), Unit: l.Unit, Limit: l.Text}
}

// judgeExact compares numbers without statistics. All runs must keep the limit.
func judgeExact(r *report.Result, l request.Limit, head, base []measure.Value) {
	low, high := ends(head)
	r.Head, r.Samples, r.Outcome = &high, len(head), verdict.Passed
	if low != high {
		r.SetInterval(verdict.Interval{Low: low, High: high})
	}
	least, most := l.Min, l.Max
	if base != nil {
		from, to := ends(base)
		change := high/to - 1
		r.Base = report.Finite(to)
		r.SetChange(verdict.Interval{Estimate: change, Low: low/to - 1, High: change}, 0)
		r.Visible = nil
		to *= 1 + l.Change
		if l.Equal {
			least = &from
		}
		if most == nil || to < *most {
			most = &to
		}
	}
	switch {
	case least != nil && low < *least:
		r.Head, r.Outcome = &low, verdict.Failed
		r.Reason = fmt.Sprintf("%s is less than %s", report.Amount(low, l.Unit), report.Amount(*least, l.Unit))
	case most != nil && high > *most:
		r.Outcome = verdict.Failed
		r.Reason = fmt.Sprintf("%s is more than %s", report.Amount(high, l.Unit), report.Amount(*most, l.Unit))
	}
}

// ends returns the least and the greatest value.
func ends(values []measure.Value) (low, high float64) {
	low, high = values[0].Value, values[0].Value
	for _, v := range values {
		low, high = min(low, v.Value), max(high, v.Value)
	}
	return low, high
}

// judgeAbsolute judges a time by the interval of its runs, made wider by the error of each.
func judgeAbsolute(r *report.Result, l request.Limit, head []measure.Value) {
	values := make([]float64, len(head))
	off := 0.0
	for i, v := range head {
		values[i], off = v.Value, max(off, v.Error)
	}
	i := verdict.Centre(values, verdict.Error, verdict.Error)
	i.Low, i.High = max(i.Low-off, 0), i.High+off
	r.Head, r.Samples = &i.Estimate, len(head)
	r.SetInterval(i)
	outcomes := []verdict.Outcome{}
	if l.Max != nil {
		outcomes = append(outcomes, i.Below(*l.Max))
	}
	if l.Min != nil {
		outcomes = append(outcomes, i.Above(*l.Min))
	}
	switch r.Outcome = verdict.Worst(outcomes...); {
	case r.Outcome == verdict.Failed:
		r.Reason = fmt.Sprintf("the whole interval, %s to %s, is outside of the limit", report.Amount(i.Low, l.Unit), report.Amount(i.High, l.Unit))
	case r.Outcome == verdict.Inconclusive:
		r.Reason = fmt.Sprintf("the limit lies within the interval of %d runs: measure more (--runs, --for), or move the limit away from what the program needs", len(head))
	}
}
