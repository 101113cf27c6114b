package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"mirador/cli/gate/verdict"
)

func pointer(v float64) *float64 { return &v }

// sampled has every outcome, and texts that a format must escape.
func sampled() *Report {
	r := &Report{Gate: "gate.xml", Seconds: 12.3456, Notes: []string{"a | note"}, Results: []Result{
		{Name: "COUNT of shop:f<int>", Kind: "exact", Region: "shop:f<int>", Metric: "COUNT", Unit: "1", Limit: "exact 10", Outcome: verdict.Failed, Head: pointer(11), Reason: "11 is more\nthan 10, 100%", File: "/src/shop,1.c", Line: 7, Samples: 1},
		{Name: "WC_TIME p99", Kind: "absolute", Metric: "WC_TIME", Of: "p99", Unit: "ms", Limit: `max "5" ms`, Outcome: verdict.Passed, Head: pointer(0.25), Samples: 9},
		{Name: "WC_TIME p50", Kind: "relative", Metric: "WC_TIME", Of: "p50", Unit: "ms", Limit: "max-change 3%", Outcome: verdict.Inconclusive, Base: pointer(2), Head: pointer(2.1), Reason: "too noisy"},
	}}
	r.Results[2].SetChange(verdict.Interval{Estimate: 0.05, Low: math.Inf(-1), High: 0.1}, 0.1)
	r.Conclude()
	return r
}

// written returns what a format makes of the sample.
func written(t *testing.T, write func(*Report, *bytes.Buffer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(sampled(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

func TestTable(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteTable(w) })
	contains(t, text, "FAILED", "PASSED", "INCONCLUSIVE", "250 us", "+5.00 %", "The gate failed after 12 s.", "a | note")
	if _, err := json.Marshal(sampled()); err != nil {
		t.Error(err)
	}
}

// TestJUnit reads the document with another reader, and checks that it has no attribute that the schema of
// pytest does not have.
func TestJUnit(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteJUnit(w) })
	suites, err := junit.Ingest([]byte(text))
	if err != nil || len(suites) != 1 {
		t.Fatalf("%v, %+v", err, suites)
	}
	s := suites[0]
	if s.Totals.Tests != 3 || s.Totals.Failed != 1 || s.Totals.Skipped != 1 || s.Totals.Passed != 1 || s.Properties["time"] != "12.346" {
		t.Errorf("%+v", s.Totals)
	}
	if e := s.Tests[0].Error; e == nil || !strings.Contains(e.Error(), "/src/shop,1.c:7") || s.Tests[2].Message != "inconclusive: too noisy" {
		t.Errorf("%+v", s.Tests)
	}
	allowed := map[string][]string{
		"testsuites": nil, "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
		"testcase": {"name", "time", "classname"}, "failure": {"message"}, "skipped": {"message"},
	}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		if e, ok := token.(xml.StartElement); ok {
			attributes, known := allowed[e.Name.Local]
			for _, a := range e.Attr {
				known = known && slices.Contains(attributes, a.Name.Local)
			}
			if !known {
				t.Errorf("%+v is not in the schema", e)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteMarkdown(w) })
	contains(t, text, "### Gate gate.xml: failed", "f&lt;int>", `a \| note`)
	bars := strings.Count(strings.Split(text, "\n")[2], "|")
	for _, line := range strings.Split(text, "\n")[2:7] {
		if line != "" && strings.Count(line, "|") != bars {
			t.Errorf("a row has not %d bars: %s", bars, line)
		}
	}
}

func TestAnnotations(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteAnnotations(w, "/src/") })
	want := "::error file=shop%2C1.c,line=7,title=COUNT of shop%3Af<int>::failed: 11 is more%0Athan 10, 100%25\n::warning title=WC_TIME p50::inconclusive: too noisy\n"
	if text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
}

// TestSARIF validates the document by the schema of SARIF 2.1.0, which the reader contains.
func TestSARIF(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteSARIF(w, "/src") })
	other, err := sarif.FromString(text)
	if err == nil && len(other.Runs) == 1 {
		// The reader makes empty members of absent ones; these are the defaults of the standard.
		run := other.Runs[0]
		run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en-US", "en-US", []string{"\n"}
		err = other.Validate()
	}
	if err != nil || len(other.Runs) != 1 || *other.Runs[0].Tool.Driver.Name != "mirador gate" {
		t.Fatalf("%v\n%s", err, text)
	}
	var read sarifLog
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	results := read.Runs[0].Results
	if len(results) != 3 || results[0].Level != "error" || results[0].Kind != "fail" || results[1].Kind != "pass" || results[2].Kind != "review" {
		t.Errorf("%+v", results)
	}
	if at := results[0].Locations[0].Physical; at.Artifact.URI != "shop,1.c" || at.Region.Line != 7 || len(results[1].Locations) > 0 {
		t.Errorf("%+v", results[0].Locations)
	}
}

// TestOpenMetrics parses the text with Prometheus' parser.
func TestOpenMetrics(t *testing.T) {
	text := written(t, func(r *Report, w *bytes.Buffer) error { return r.WriteOpenMetrics(w) })
	body, ended := strings.CutSuffix(text, "# EOF\n")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil || !ended {
		t.Fatalf("%v\n%s", err, text)
	}
	if n := len(families["mirador_gate_passed"].Metric); n != 2 {
		t.Errorf("%d verdicts", n)
	}
	values := families["mirador_gate_value"].Metric
	if len(values) != 4 || values[1].GetGauge().GetValue() != 0.00025 {
		t.Errorf("%v", values)
	}
}
