package gate

import (
	"fmt"
	"math"
	"time"

	"mirador/cli/gate/measure"
	"mirador/cli/gate/recorded"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// Check judges recorded values: those of head by the limits of the gate, and compared with those of
// base, which is nil if the gate needs none.
func Check(name string, file *request.File, head, base *recorded.Values) (*report.Report, error) {
	begun := time.Now()
	rep := &report.Report{Gate: name}
	if err := head.Missing(file, "head"); err != nil {
		return nil, err
	}
	relative := 0
	for i, l := range file.Limits {
		var others []measure.Value
		if l.Compared() {
			if len(base.ByLimit[i]) == 0 {
				return nil, base.Missing(file, "base")
			}
			others = valuesOf(base.ByLimit[i])
		}
		if l.Kind == request.Relative {
			relative++
			rep.Results = append(rep.Results, shifted(l, head.ByLimit[i], base.ByLimit[i]))
			continue
		}
		rep.Results = append(rep.Results, judge(l, valuesOf(head.ByLimit[i]), others))
	}
	if relative > 0 {
		correct(rep, file, relative)
		rep.Notes = append(rep.Notes, "Times that were measured one after the other also contain what the machine did meanwhile: run base and head by turns, or compare the programs by gate run.")
	}
	rep.Seconds = time.Since(begun).Seconds()
	rep.Conclude()
	return rep, nil
}

func valuesOf(list []float64) (values []measure.Value) {
	for _, v := range list {
		values = append(values, measure.Value{Value: v})
	}
	return values
}

// shifted compares the runs of head with those of base.
func shifted(l request.Limit, head, base []float64) report.Result {
	r := resultOf(l)
	r.HeadValues, r.BaseValues, r.Samples = head, base, len(head)
	r.Head, r.Base = report.Finite(verdict.Median(head)), report.Finite(verdict.Median(base))
	from, okBase := logarithms(base)
	to, okHead := logarithms(head)
	if !okBase || !okHead {
		r.Outcome, r.Reason = verdict.Inconclusive, "a value is not greater than 0, so there is no relative change"
		return r
	}
	change := verdict.Change{Limit: l.Change, Interval: verdict.Shift(from, to, verdict.Error, verdict.Error)}
	r.SetChange(change.Relative(), change.Visible())
	r.Outcome = change.Below(math.Log1p(l.Change))
	switch needed := verdict.Needed(len(head), verdict.Error); {
	case r.Outcome == verdict.Failed:
		r.Reason = fmt.Sprintf("head takes %s more than base, the limit is %s", report.Percent(*r.Change), report.Percent(l.Change))
	case r.Outcome == verdict.Passed:
		r.Reason = fmt.Sprintf("this comparison fails reliably from %s on", report.Percent(change.Visible()))
	case len(base) < needed || needed == 0:
		r.Reason = fmt.Sprintf("%d values of head and %d of base prove nothing with an error of 1 %%: give at least 5 of each, such as by go test -count=10", len(head), len(base))
	case change.Blind():
		r.Reason = fmt.Sprintf("the values vary more than the limit of %s: measure more runs, or compare the programs by gate run", report.Percent(l.Change))
	default:
		r.Reason = fmt.Sprintf("the change is too near to the limit to judge it by these runs; a change is found reliably from %s on", report.Percent(change.Visible()))
	}
	return r
}

func logarithms(values []float64) (list []float64, ok bool) {
	for _, v := range values {
		if v <= 0 {
			return nil, false
		}
		list = append(list, math.Log(v))
	}
	return list, true
}

// correct changes failures to inconclusive if they are not significant among several relative limits,
// by Holm's method: of m limits, the k-th failure needs an error of 1 % divided by m-k+1.
func correct(rep *report.Report, file *request.File, m int) {
	failed := map[int]bool{}
	for again := true; again; {
		again = false
		for i, l := range file.Limits {
			r := &rep.Results[i]
			if l.Kind != request.Relative || r.Outcome != verdict.Failed || failed[i] {
				continue
			}
			from, _ := logarithms(r.BaseValues)
			to, _ := logarithms(r.HeadValues)
			if verdict.Shift(from, to, verdict.Error/float64(m-len(failed)), verdict.Error).Low > math.Log1p(l.Change) {
				failed[i], again = true, true
			}
		}
	}
	for i, l := range file.Limits {
		if r := &rep.Results[i]; l.Kind == request.Relative && r.Outcome == verdict.Failed && !failed[i] {
			r.Outcome = verdict.Inconclusive
			r.Reason = fmt.Sprintf("with %d relative limits this failure may be chance: measure more runs", m)
		}
	}
}
