package gateway

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"mirador/mir"
	"mirador/probes"
)

// mostSeries limits the values of probes in one answer.
const mostSeries = 50_000

// The labels of a value. They name what it is the value of; those that do not apply are "".
var seriesLabels = []string{"label", "probe", "app", "region", "metric", "function", "node", "process", "thread"}

var (
	valueDesc = prometheus.NewDesc("mirador_probe_value",
		"The value of a labelled probe, as VALUE answers it: times are milliseconds.", seriesLabels, nil)
	percentileDesc = prometheus.NewDesc("mirador_probe_percentile",
		"A percentile of the durations of a labelled probe's region, in milliseconds.", append(seriesLabels, "percentile"), nil)
	omittedDesc = prometheus.NewDesc("mirador_probe_values_omitted",
		"The values of labelled probes that are not in this answer, because there are too many.", nil, nil)
)

// series is the values of labelled probes as a prometheus.Collector.
type series []probes.Labelled

func (series) Describe(out chan<- *prometheus.Desc) {
	out <- valueDesc
	out <- percentileDesc
	out <- omittedDesc
}

func (list series) Collect(out chan<- prometheus.Metric) {
	sent, omitted := 0, 0
	send := func(d *prometheus.Desc, text string, labels ...string) {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return // not available
		}
		if sent++; sent > mostSeries {
			omitted++
			return
		}
		out <- prometheus.MustNewConstMetric(d, prometheus.UntypedValue, value, labels...)
	}
	for _, probe := range list {
		seen := make(map[probes.LabelledKey]bool)
		for _, v := range probe.Values {
			if seen[v.LabelledKey] { // a request may ask for a metric twice
				continue
			}
			seen[v.LabelledKey] = true
			s := &probe.Status
			labels := []string{s.Label, s.ID, s.App, s.Region, v.Metric, v.Function, v.Node, v.Process, v.Thread}
			send(valueDesc, v.Value, labels...)
			for _, p := range v.Percentiles {
				send(percentileDesc, p.Value, append(labels, mir.Decimal(p.Of))...)
			}
		}
	}
	out <- prometheus.MustNewConstMetric(omittedDesc, prometheus.GaugeValue, float64(omitted))
}
