package gate

import (
	"context"
	"fmt"
	"time"

	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// SelfTest judges the gate itself on this machine, by the relative limits of its file: it compares
// the program with itself, which must pass, and with itself slowed down by a known fraction, which
// must fail.
func (g *Gate) SelfTest(ctx context.Context, slowdown float64) (*report.Report, error) {
	begun := time.Now()
	rep := &report.Report{Gate: g.Name}
	limits := g.File.Of(request.Relative)
	g.Base, g.LayoutFails = g.Head, true
	if err := g.trial(ctx, rep, limits, "no change", verdict.Passed); err != nil {
		return nil, err
	}
	slow, err := g.Runner.Slow(ctx, g.Head, limits, slowdown)
	if err != nil {
		return nil, err
	}
	g.Head = slow
	if err := g.trial(ctx, rep, limits, fmt.Sprintf("%s injected", report.Percent(slowdown)), verdict.Failed); err != nil {
		return nil, err
	}
	rep.Notes = g.Runner.Remarks
	rep.Seconds = time.Since(begun).Seconds()
	rep.Conclude()
	return rep, nil
}

// trial runs the gate, and turns its verdicts into verdicts about the gate.
func (g *Gate) trial(ctx context.Context, rep *report.Report, limits []request.Limit, what string, right verdict.Outcome) error {
	g.Runner.Note("trial: %s", what)
	own := &report.Report{}
	if err := g.judgeChanges(ctx, own, limits); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for i := range own.Results {
		r := &own.Results[i]
		g.place(r)
		r.Name = what + ": " + r.Name
		switch found := r.Outcome; found {
		case right:
			r.Outcome, r.Reason = verdict.Passed, fmt.Sprintf("the gate %s, as it must", found)
		case verdict.Inconclusive:
			r.Reason = "the gate was inconclusive: " + r.Reason
		default:
			r.Outcome, r.Reason = verdict.Failed, fmt.Sprintf("the gate %s, but should have %s: do not trust it on this machine", found, right)
		}
	}
	rep.Results = append(rep.Results, own.Results...)
	return nil
}
