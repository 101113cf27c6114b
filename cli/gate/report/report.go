// Package report describes the verdicts of a gate, and prints them: as a table for people, and in
// formats that other tools read. It knows no gateway. The gate and the command line import it; it
// starts no goroutines.
package report

import (
	"fmt"
	"math"
	"strconv"

	"mirador/cli/gate/verdict"
)

// Result is the verdict about one limit.
type Result struct {
	Name    string          `json:"name"`             // the metric and its unit of the program
	Kind    string          `json:"kind"`             // exact, absolute or relative
	Region  string          `json:"region,omitempty"` // the unit of the program
	Metric  string          `json:"metric"`
	Of      string          `json:"of,omitempty"` // p50, mean …
	Unit    string          `json:"unit"`         // of Base and Head; "1" for plain numbers
	Limit   string          `json:"limit"`        // as in the gate file
	Outcome verdict.Outcome `json:"outcome"`
	Base    *float64        `json:"base,omitempty"`
	Head    *float64        `json:"head,omitempty"`
	// Low and High bound the interval of Head, or of Change.
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Change *float64 `json:"change,omitempty"` // relative: 0.05 is 5 % more than base
	// Visible is the relative change from which on the measurement fails reliably.
	Visible *float64 `json:"visible,omitempty"`
	Reason  string   `json:"reason"` // one sentence
	File    string   `json:"file,omitempty"`
	Line    int      `json:"line,omitempty"`
	Samples int      `json:"samples"` // runs or starts
	Number  int      `json:"-"`       // of the limit in the gate file
	// The values of the runs or starts, in Unit.
	BaseValues []float64 `json:"base_values,omitempty"`
	HeadValues []float64 `json:"head_values,omitempty"`
	// Changes are those of the starts, from turns that ran one right after the other. So they are not the
	// ratios of HeadValues and BaseValues.
	Changes []float64 `json:"changes,omitempty"`
}

// Report is the verdict of a gate.
type Report struct {
	Gate    string          `json:"gate"` // the gate file
	Outcome verdict.Outcome `json:"outcome"`
	Results []Result        `json:"results"`
	Notes   []string        `json:"notes,omitempty"` // about the machine and the measurement
	Seconds float64         `json:"seconds"`
}

// Conclude sets the outcome of the whole gate.
func (r *Report) Conclude() {
	all := make([]verdict.Outcome, len(r.Results))
	for i := range r.Results {
		all[i] = r.Results[i].Outcome
	}
	r.Outcome = verdict.Worst(all...)
}

// Finite returns a pointer to a number, nil if it is not finite: JSON has no other numbers.
func Finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// SetInterval sets the ends of the interval.
func (r *Result) SetInterval(i verdict.Interval) { r.Low, r.High = Finite(i.Low), Finite(i.High) }

// SetChange sets the relative change with its interval, and from which on a change is visible.
func (r *Result) SetChange(i verdict.Interval, visible float64) {
	r.Change, r.Visible = Finite(i.Estimate), Finite(visible)
	r.SetInterval(i)
}

// Amount writes a value in a unit that suits it.
func Amount(v float64, unit string) string {
	switch {
	case unit == "ms" && v != 0 && math.Abs(v) < 1e-3:
		return number(v*1e6) + " ns"
	case unit == "ms" && v != 0 && math.Abs(v) < 1:
		return number(v*1e3) + " us"
	case unit == "ms" && math.Abs(v) >= 1e3:
		return number(v/1e3) + " s"
	case unit == "1":
		return number(v)
	}
	return number(v) + " " + unit
}

// number writes four digits, and all digits before the point.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if math.Abs(v) >= 1000 && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Percent writes a relative change with its sign.
func Percent(v float64) string { return fmt.Sprintf("%+.2f %%", 100*v) }

// amount writes a value that may be absent.
func (r *Result) amount(v *float64) string {
	if v == nil {
		return "-"
	}
	return Amount(*v, r.Unit)
}

// interval writes the interval.
func (r *Result) interval() string {
	if r.Low == nil || r.High == nil {
		return "-"
	}
	if r.Change != nil {
		return Percent(*r.Low) + " to " + Percent(*r.High)
	}
	return r.amount(r.Low) + " to " + r.amount(r.High)
}

func (r *Result) change() string {
	if r.Change == nil {
		return "-"
	}
	return Percent(*r.Change)
}
