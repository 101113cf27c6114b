package gate

import (
	"fmt"
	"math"

	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// judgePrediction compares the median of head's runs with the medians of earlier runs.
func judgePrediction(r *report.Result, l request.Limit) {
	median := verdict.Median(r.HeadValues)
	r.Head, r.Base, r.Samples = report.Finite(median), report.Finite(verdict.Median(r.BaseValues)), len(r.HeadValues)
	earlier, ok := logarithms(r.BaseValues)
	if !ok || median <= 0 {
		r.Outcome, r.Reason = verdict.Inconclusive, "a value is not greater than 0, so there is no relative change"
		return
	}
	change := verdict.Change{Limit: l.Change, Interval: verdict.Predict(earlier, math.Log(median), verdict.Error, verdict.Error)}
	r.SetChange(change.Relative(), change.Visible())
	r.Outcome = change.Below(math.Log1p(l.Change))
	switch {
	case r.Outcome == verdict.Failed:
		r.Reason = fmt.Sprintf("head takes %s more than the %d runs since the last change, the limit is %s", report.Percent(*r.Change), len(earlier), report.Percent(l.Change))
	case r.Outcome == verdict.Passed:
		r.Reason = fmt.Sprintf("compared with the %d runs since the last change; this fails reliably from %s on", len(earlier), report.Percent(change.Visible()))
	case len(earlier) < verdict.LeastHistory:
		r.Reason = fmt.Sprintf("the history has %d runs since the last change, and needs %d", len(earlier), verdict.LeastHistory)
	case change.Blind():
		r.Reason = fmt.Sprintf("the runs of the history vary more than the limit of %s: give a --base, with which head is compared on this machine, at this time", report.Percent(l.Change))
	default:
		r.Reason = fmt.Sprintf("the change is too near to the limit to judge it by the history; a change is found reliably from %s on", report.Percent(change.Visible()))
	}
}
