package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

var inLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// WriteOpenMetrics writes the values and the verdicts for monitoring systems. Values are in the
// base units of OpenMetrics: seconds and bytes.
func (r *Report) WriteOpenMetrics(w io.Writer) error {
	var text strings.Builder
	text.WriteString("# TYPE mirador_gate_passed gauge\n# HELP mirador_gate_passed 1 if the limit is kept, 0 if not; absent if inconclusive.\n")
	for i := range r.Results {
		if one := &r.Results[i]; one.Outcome != "inconclusive" {
			fmt.Fprintf(&text, "mirador_gate_passed{%s} %d\n", one.labels(""), map[bool]int{true: 1}[one.Outcome == "passed"])
		}
	}
	text.WriteString("# TYPE mirador_gate_value gauge\n# HELP mirador_gate_value The measured values, times in seconds.\n")
	for i := range r.Results {
		one := &r.Results[i]
		for _, side := range []struct {
			name  string
			value *float64
		}{{"base", one.Base}, {"head", one.Head}} {
			if side.value == nil {
				continue
			}
			v := *side.value
			if one.Unit == "ms" {
				v /= 1e3
			}
			fmt.Fprintf(&text, "mirador_gate_value{%s} %s\n", one.labels(side.name), strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	text.WriteString("# EOF\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// labels returns the labels of a result, which differ from those of all others of its gate.
func (r *Result) labels(side string) string {
	text := fmt.Sprintf(`metric="%s",region="%s",of="%s",limit="%s"`, inLabel.Replace(r.Metric), inLabel.Replace(r.Region), r.Of, inLabel.Replace(r.Limit))
	if side != "" {
		text += `,side="` + side + `"`
	}
	return text
}
