package request

import (
	"math"
	"strconv"
	"strings"

	"mirador/cli/gate/verdict"
	"mirador/mir"
	"mirador/mir/translate"
)

// limits reads the attributes of a metric, and refuses those that contradict each other or do
// not fit the metric.
func (r *reader) limits(e mir.Element, l *Limit, row translate.Metric) {
	l.Min, l.Max = r.amount(e, "min", row.Unit), r.amount(e, "max", row.Unit)
	r.exact(e, l, row.Unit)
	r.change(e, l)
	r.statistic(e, l, row)
	if l.Min != nil && l.Max != nil && *l.Min > *l.Max {
		r.fault(l.Pos, "no value is at least %g and at most %g: exchange min and max", *l.Min, *l.Max)
	}
}

// amount reads a limit in the unit of its metric.
func (r *reader) amount(e mir.Element, name, unit string) *float64 {
	a, ok := ofSpace(e, Namespace, name)
	if !ok {
		return nil
	}
	v, problem := quantity(a.Value, unit)
	if problem != "" {
		r.fault(a.Pos, "%s is %s: %s", name, mir.Quote(a.Value), problem)
		return nil
	}
	return &v
}

// scales are the units of limits, by the unit of the metric.
var scales = map[string]map[string]float64{
	"ms": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3},
	"B":  {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
	"1":  {"": 1},
}

// quantity parses a number with its unit. Times need one, since most people do not think in the
// milliseconds of MIR.
func quantity(text, unit string) (v float64, problem string) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, suffix := text[:end], strings.TrimSpace(text[end:])
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) || v < 0 || strings.ContainsAny(number, "xXpP_nN") {
		return 0, "a number was expected, such as " + sample(unit)
	}
	scale, ok := scales[unit][suffix]
	if !ok {
		return 0, "the unit is not known here; write for example " + sample(unit)
	}
	return v * scale, ""
}

func sample(unit string) string {
	switch unit {
	case "ms":
		return `"5 ms" or "80 us"`
	case "B":
		return `"64 KiB" or "4096 B"`
	}
	return `"1000"`
}

// exact reads a number, a band such as 990..1010, or true for the value of base.
func (r *reader) exact(e mir.Element, l *Limit, unit string) {
	a, ok := ofSpace(e, Namespace, "exact")
	if !ok {
		return
	}
	if l.Kind != Exact {
		r.fault(a.Pos, "%s is a time, and never exact: write g:max or g:max-change", l.Metric)
		return
	}
	if l.Min != nil || l.Max != nil {
		r.fault(a.Pos, "exact contradicts min and max: write a band, such as g:exact=\"990..1010\"")
		return
	}
	if strings.TrimSpace(a.Value) == "true" {
		l.Equal = true
		return
	}
	from, to, band := strings.Cut(a.Value, "..")
	if !band {
		to = from
	}
	least, problem := quantity(from, unit)
	most, other := quantity(to, unit)
	switch {
	case problem+other != "":
		r.fault(a.Pos, "exact is %s; write a number, a band such as 990..1010, or true for the value of base", mir.Quote(a.Value))
	case least > most:
		r.fault(a.Pos, "exact is %s: the band begins above its end", mir.Quote(a.Value))
	default:
		l.Min, l.Max = &least, &most
	}
}

// change reads the greatest increase against base.
func (r *reader) change(e mir.Element, l *Limit) {
	a, ok := ofSpace(e, Namespace, "max-change")
	if !ok {
		return
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(a.Value), "%")
	v, problem := quantity(number, "1")
	if !percent || problem != "" {
		r.fault(a.Pos, "max-change is %s; a percentage was expected, such as 3%%", mir.Quote(a.Value))
		return
	}
	l.Limited, l.Change = true, v/100
	if l.Equal {
		r.fault(a.Pos, "max-change contradicts exact=\"true\", which allows no change")
	}
	if _, err := verdict.PlanFor(l.Change); err != nil && l.Kind != Exact {
		r.fault(a.Pos, "max-change is %s: %v", mir.Quote(a.Value), err)
	}
}

// statistic reads which statistic of a time is compared: the median, if the file has none.
func (r *reader) statistic(e mir.Element, l *Limit, row translate.Metric) {
	a, ok := ofSpace(e, Namespace, "of")
	timed := row.Kind == "timer"
	if ok && !timed {
		r.fault(a.Pos, "%s has one value; only times of a region have percentiles", l.Metric)
	}
	if l.Limited && l.Kind == Absolute && !timed {
		r.fault(l.Pos, "%s depends on how long the program runs; only times of a region can be compared with base", l.Metric)
	}
	if !timed || ok && strings.TrimSpace(a.Value) == "mean" {
		l.Of.Mean = timed
		return
	}
	l.Of.Percent = 50
	if ok {
		l.Of.Percent = r.percentile(a)
	}
	if l.Limited && l.Of.Percent > 90 {
		r.fault(a.Pos, "the change of high percentiles is noise on any machine: compare p50 to p90, and give p%g an absolute limit (g:max)", l.Of.Percent)
	}
}

func (r *reader) percentile(a mir.Attribute) float64 {
	number, ok := strings.CutPrefix(strings.TrimSpace(a.Value), "p")
	v, problem := quantity(number, "1")
	if !ok || problem != "" || v <= 0 || v >= 100 {
		r.fault(a.Pos, "of is %s; write mean, or a percentile such as p50, p99 or p99.9", mir.Quote(a.Value))
	}
	return v
}

// String returns the statistic as it is written in a file.
func (o Of) String() string {
	switch {
	case o.Mean:
		return "mean"
	case o.Percent > 0:
		return "p" + strconv.FormatFloat(o.Percent, 'g', -1, 64)
	}
	return ""
}
