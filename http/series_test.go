package gateway

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/probes"
)

// hostile is a name that a target or a user may choose.
const hostile = "a\"b\\c\nd{e=\"f\"} 1\n# EOF\n\u2028é"

// labelled returns the values of a probe of one application.
func labelled(values ...probes.LabelledValue) *scripted {
	b := one()
	b.labelled = []probes.Labelled{{Status: probes.Status{ID: "probe-1", App: "mmul", Label: hostile, Region: "mmul:\xff" + hostile}, Values: values}}
	return b
}

func valueOn(thread, metric, unit, text string, kind probes.ValueKind) probes.LabelledValue {
	return probes.LabelledValue{
		LabelledKey: probes.LabelledKey{Metric: metric, Node: "n_1", Process: "p_1", Thread: thread}, Unit: unit, Value: text, Kind: kind,
	}
}

// scraped parses the answer as Prometheus does.
func scraped(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// TestSeries checks names, units and types of the values of labelled probes, and that labels
// arrive as they are.
func TestSeries(t *testing.T) {
	maximum := valueOn("t_1", "WC_TIME", "ms", "250", probes.Latest)
	maximum.Function = "MAXIMUM"
	variance := valueOn("", "WC_TIME", "ms", "4000000", probes.Latest)
	variance.Function = "VARIANCE"
	spread := valueOn("t_1", "WC_TIME", "ms", "0.25", probes.Latest)
	spread.Percentiles = []mir.Percentile{{Of: 99.9, Value: "3"}, {Of: 50}}
	b := labelled(
		spread, maximum, variance,
		valueOn("t_1", "COUNT", "1", "7", probes.Total), valueOn("t_1", "COUNT", "1", "7", probes.Total),
		valueOn("t_1", "SYSCALL_TIME:read", "ms", "1500", probes.Total),
		valueOn("", "HEAP_MEM_USAGE", "B", "4096", probes.Level),
		valueOn("t_2", "COUNT", "1", "", probes.Total),
		valueOn("", "READ_BYTES", "B", "5", probes.Total),
	)
	b.labelled[0].Histograms = []probes.LabelledHistogram{{
		LabelledKey: probes.LabelledKey{Metric: "WC_TIME", Thread: "t_1"}, Count: 3, Sum: 2_000_000_000, AtMost: map[uint64]uint64{1000: 1, 1_000_000_000: 2},
	}}
	families := scraped(t, ask(t, b, root, "GET", "/metrics", "").Body.String())
	for name, want := range map[string]struct {
		as    dto.MetricType
		value float64
		label string // another label, with its value
	}{
		"mirador_probe_latest_wc_time_seconds":           {dto.MetricType_GAUGE, 0.00025, "thread=t_1"},
		"mirador_probe_maximum_wc_time_seconds":          {dto.MetricType_GAUGE, 0.25, "process=p_1"},
		"mirador_probe_variance_wc_time_seconds_squared": {dto.MetricType_GAUGE, 4, "thread="},
		"mirador_probe_percentile_wc_time_seconds":       {dto.MetricType_GAUGE, 0.003, "percentile=99.9"},
		"mirador_probe_count_total":                      {dto.MetricType_COUNTER, 7, "call="},
		"mirador_probe_syscall_time_seconds_total":       {dto.MetricType_COUNTER, 1.5, "call=read"},
		"mirador_probe_read_bytes_total":                 {dto.MetricType_COUNTER, 5, "node=n_1"},
		"mirador_probe_heap_mem_usage_bytes":             {dto.MetricType_GAUGE, 4096, "node=n_1"},
		"mirador_probe_execution_wc_time_seconds":        {dto.MetricType_HISTOGRAM, 2, "thread=t_1"},
		"mirador_probe_values_omitted":                   {dto.MetricType_GAUGE, 0, ""},
	} {
		f := families[name]
		if f == nil || f.GetType() != want.as || len(f.Metric) != 1 {
			t.Errorf("%s is %v", name, f)
			continue
		}
		m := f.Metric[0]
		got := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		if diff := got - want.value; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want.value)
		}
		if want.label == "" {
			continue
		}
		labels := make(map[string]string)
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if key, value, _ := strings.Cut(want.label, "="); labels[key] != value || labels["label"] != hostile || labels["region"] != "mmul:\uFFFD"+hostile || labels["app"] != "mmul" {
			t.Errorf("%s has the labels %q", name, labels)
		}
	}
	h := families["mirador_probe_execution_wc_time_seconds"].Metric[0].GetHistogram()
	if h.GetSampleCount() != 3 || len(h.Bucket) != 3 || h.Bucket[0].GetUpperBound() != 1e-6 || h.Bucket[1].GetCumulativeCount() != 2 {
		t.Errorf("the histogram is %v", h)
	}
}

// TestSeriesOfCatalog checks that no two metrics of the catalog have the same name and different
// types, which would make the whole answer invalid.
func TestSeriesOfCatalog(t *testing.T) {
	b := labelled()
	for _, m := range translate.Catalog() {
		kinds := map[string][]probes.ValueKind{"gauge": {probes.Level}, "timer": {probes.Latest}, "counter": {probes.Total, probes.Latest}}
		for _, kind := range kinds[m.Kind] {
			b.labelled[0].Values = append(b.labelled[0].Values, valueOn("", m.Name, m.Unit, "1", kind))
		}
	}
	for _, accept := range []string{"text/plain", "application/openmetrics-text; version=1.0.0"} {
		w := ask(t, b, root, "GET", "/metrics", "", "Accept", accept)
		expect(t, w, 200, "mirador_probe_latest_wc_time_seconds")
		family := ""
		seen := make(map[string]bool)
		for line := range strings.Lines(w.Body.String()) {
			if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
				if family, _, _ = strings.Cut(rest, " "); seen[family] {
					t.Errorf("%s: %s has two types", accept, family)
				}
				seen[family] = true
			}
		}
	}
}

// TestSeriesAreOfTheCaller checks that only callers that may see an application get its values, and
// that the number of values is limited.
func TestSeriesAreOfTheCaller(t *testing.T) {
	b := labelled(valueOn("t_1", "COUNT", "1", "7", probes.Total))
	expect(t, ask(t, b, root, "GET", "/metrics", ""), 200, "mirador_probe_count_total{")
	if got := ask(t, b, other, "GET", "/metrics", "").Body.String(); strings.Contains(got, "mirador_probe_count") || !strings.Contains(got, "mirador_probes 1") {
		t.Errorf("another user gets %s", got)
	}
	for n := range mostSeries + 2 {
		b.labelled[0].Values = append(b.labelled[0].Values, valueOn(fmt.Sprint("u_", n), "COUNT", "1", "7", probes.Total))
	}
	expect(t, ask(t, b, root, "GET", "/metrics", ""), 200, "mirador_probe_values_omitted 3")
}
