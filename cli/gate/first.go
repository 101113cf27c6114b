package gate

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strings"

	"mirador/cli/gate/measure"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// Draft is a first gate file from a live program.
type Draft struct {
	Runner    *measure.Runner
	Head      measure.Side
	Functions string // the prefix of their names; "" for all of the program
	Most      int    // number of functions in the gate
}

// percentOf are the percentiles of a draft: of the typical and of the slow calls.
var percentOf = []float64{50, 99}

// margins are the least factors between what was observed and the limit, by percentile: other machines
// and other days are slower, and high percentiles vary more.
var margins = []float64{1.5, 3}

// Write runs the program, and returns a gate file with comments.
func (d *Draft) Write(ctx context.Context) (string, error) {
	found, err := d.Runner.Hottest(ctx, d.Head, d.Functions)
	if err != nil {
		return "", err
	}
	found = repeated(found)
	if len(found) == 0 {
		return "", errors.New("the program executed none of the functions that can be measured")
	}
	found = found[:min(len(found), d.Most)]
	var limits []request.Limit
	for _, f := range found {
		limits = append(limits, request.Limit{Kind: request.Exact, Region: f.Region, Metric: "COUNT", Unit: "1"})
		for _, p := range percentOf {
			limits = append(limits, request.Limit{Kind: request.Absolute, Region: f.Region, Metric: "WC_TIME", Unit: "ms", Of: request.Of{Percent: p}})
		}
	}
	values, err := d.Runner.Values(ctx, d.Head, limits)
	if err != nil {
		return "", err
	}
	calls := request.Limit{Kind: request.Exact, Metric: "SYSCALL_COUNT", Unit: "1"}
	system, err := d.Runner.Values(ctx, d.Head, []request.Limit{calls})
	if err != nil {
		d.Runner.Remark("the gate does not count system calls: %v", err)
		system = nil
	}
	return d.text(found, values, system), ctx.Err()
}

// repeated returns the functions that are called more than once, because the time of functions such as main is
// that of the whole program. If each function is called once, it returns all.
func repeated(all []measure.Hot) (some []measure.Hot) {
	for _, f := range all {
		if f.Count > 1 {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}

func (d *Draft) text(found []measure.Hot, values, system [][]measure.Value) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<g:gate xmlns:g=%q>\n", request.Namespace)
	comment(&b, "  ", "Written by mirador gate init from %d runs of: %s", len(values[1]), cmp.Or(d.Head.Command, fmt.Sprintf("process %d", d.Head.PID)))
	comment(&b, "  ", "The functions that took most time, with what they call. Delete what does not matter, and narrow the limits that do.")
	for i, f := range found {
		count, p50, p99 := values[3*i], values[3*i+1], values[3*i+2]
		fmt.Fprintf(&b, "  <instrreq>\n    <codeRegion from=%s/>\n", attribute(f.Region))
		d.count(&b, count)
		for n, v := range [][]measure.Value{p50, p99} {
			if calls, _ := ends(count); n > 0 && calls < leastForHigh && d.Runner.For == 0 {
				break // few calls
			}
			low, high := ends(v)
			comment(&b, "    ", "p%g was %s to %s", percentOf[n], report.Amount(low, "ms"), report.Amount(high, "ms"))
			fmt.Fprintf(&b, "    <metric name=\"WC_TIME\" g:max=%q g:of=\"p%g\"/>\n", limitOf(v, margins[n]), percentOf[n])
		}
		comment(&b, "    ", `with a base: <metric name="WC_TIME" g:max-change="%s"/>`, changeOf(p50))
		b.WriteString("  </instrreq>\n")
	}
	switch {
	case system == nil:
	case d.Runner.For > 0:
		_, high := ends(system[0])
		comment(&b, "  ", "%s system calls in %v: this depends on the speed of the machine, and has no limit", report.Amount(high, "1"), d.Runner.For)
	default:
		_, high := ends(system[0])
		comment(&b, "  ", "the program made %s system calls", report.Amount(high, "1"))
		fmt.Fprintf(&b, "  <instrreq>\n    <metric name=\"SYSCALL_COUNT\" g:max=\"%.0f\"/>\n  </instrreq>\n", math.Ceil(high*1.1))
	}
	b.WriteString("</g:gate>\n")
	return b.String()
}

// attribute quotes a value, such as the name of a template.
func attribute(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder returns no errors
	return `"` + b.String() + `"`
}

// comment writes a comment, in which two hyphens must not follow each other.
func comment(b *strings.Builder, indent, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for strings.Contains(text, "--") {
		text = strings.ReplaceAll(text, "--", "- -")
	}
	fmt.Fprintf(b, "%s<!-- %s -->\n", indent, strings.TrimSuffix(text, "-"))
}

// count writes the limit of a number of calls: exact if all runs had the same, otherwise a band.
func (d *Draft) count(b *strings.Builder, v []measure.Value) {
	low, high := ends(v)
	switch {
	case d.Runner.For > 0:
		comment(b, "    ", "%s calls in %v: this depends on the speed of the machine, and has no limit", report.Amount(high, "1"), d.Runner.For)
	case low == high && len(v) > 1:
		comment(b, "    ", "the same in all runs")
		fmt.Fprintf(b, "    <metric name=\"COUNT\" g:exact=\"%.0f\"/>\n", low)
	default:
		margin := math.Ceil(max(high-low, high/20))
		comment(b, "    ", "%.0f to %.0f in %d runs", low, high, len(v))
		fmt.Fprintf(b, "    <metric name=\"COUNT\" g:exact=\"%.0f..%.0f\"/>\n", max(low-margin, 0), high+margin)
	}
}

// limitOf returns a limit above the observed times and their errors: higher by twice their spread, and
// at least by the margin.
func limitOf(v []measure.Value, margin float64) string {
	low, high := ends(v)
	off := 0.0
	for _, one := range v {
		off = max(off, one.Error)
	}
	if i := verdict.Centre(numbers(v), verdict.Error, verdict.Error); !math.IsInf(i.High, 0) {
		high = max(high, i.High)
	}
	high += off
	return rounded(max(high+2*(high-low), margin*high, high+shortest))
}

// shortest is the least distance of a limit from what was seen, in milliseconds: clocks are not more exact.
const shortest = 50e-6

// leastForHigh is the number of calls below which a high percentile is that of single calls.
const leastForHigh = 200

// rounded writes a time with two digits, rounded up.
func rounded(ms float64) string {
	unit, names := ms*1e6, []string{"ns", "us", "ms", "s"}
	i := 0
	for ; unit >= 1000 && i < len(names)-1; i++ {
		unit /= 1000
	}
	step := math.Pow(10, math.Floor(math.Log10(max(unit, 1)))-1)
	return fmt.Sprintf("%g %s", math.Ceil(unit/max(step, 1)-1e-9)*max(step, 1), names[i])
}

// changeOf returns a limit for changes: three percent, more if the median varies much.
func changeOf(v []measure.Value) string {
	low, high := ends(v)
	if low > 0 && high/low > 1.2 {
		return "5%"
	}
	return "3%"
}
