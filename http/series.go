package gateway

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"mirador/mir"
	"mirador/probes"
)

// mostSeries limits the values of probes in one answer; a histogram is several values.
const mostSeries = 50_000

// The labels of a value. Those that do not apply are "", which is the same as absent.
var seriesLabels = []string{"label", "probe", "app", "region", "call", "node", "process", "thread"}

// series is the values of labelled probes as a prometheus.Collector. The metrics follow the
// conventions of Prometheus: a name for each metric of the catalog, base units, and _total for
// values that only grow.
type series []probes.Labelled

// Describe sends nothing: the names depend on what the probes measure.
func (series) Describe(chan<- *prometheus.Desc) {}

var omittedDesc = prometheus.NewDesc("mirador_probe_values_omitted",
	"The values of labelled probes that are not in this answer, because there are too many.", nil, nil)

func (list series) Collect(out chan<- prometheus.Metric) {
	c := collection{out: out, seen: make(map[seriesKey]bool)}
	for i := range list {
		probe := &list[i]
		for j := range probe.Values {
			c.value(&probe.Status, &probe.Values[j])
		}
		for j := range probe.Histograms {
			c.histogram(&probe.Status, &probe.Histograms[j])
		}
	}
	out <- prometheus.MustNewConstMetric(omittedDesc, prometheus.GaugeValue, float64(c.omitted))
}

// collection sends series, until there are too many.
type collection struct {
	out           chan<- prometheus.Metric
	seen          map[seriesKey]bool // a request may ask for a metric twice
	sent, omitted int
}

// seriesKey identifies a series: a name and what it is a value of.
type seriesKey struct {
	name, percentile, probe string
	probes.LabelledKey
}

// room reports whether n values of a new series may be sent.
func (c *collection) room(k seriesKey, n int) bool {
	if c.seen[k] {
		return false
	}
	c.seen[k] = true
	if c.sent+n > mostSeries {
		c.omitted += n
		return false
	}
	c.sent += n
	return true
}

// family is what the values with one name have in common.
type family struct {
	prefix, suffix string // of the name
	as             prometheus.ValueType
	what           string // the end of the help text
}

// families has the families of last values, by their kind.
var families = map[probes.ValueKind]family{
	probes.Level:  {"", "", prometheus.GaugeValue, "as it is now"},
	probes.Latest: {"latest_", "", prometheus.GaugeValue, "of the latest execution or measurement"},
	probes.Total:  {"", "_total", prometheus.CounterValue, "since the probe was activated or reset"},
}

func statistic(function string) family {
	return family{strings.ToLower(function) + "_", "", prometheus.GaugeValue, "the statistic " + function}
}

var (
	percentiles = family{"percentile_", "", prometheus.GaugeValue, "a percentile of all executions"}
	executions  = family{prefix: "execution_", what: "of each execution of the region"}
)

func (c *collection) value(s *probes.Status, v *probes.LabelledValue) {
	f := families[v.Kind]
	if v.Function != "" {
		f = statistic(v.Function)
	}
	unit, divisor := baseUnit(v.Unit, v.Function)
	c.number(s, v, f, unit, v.Value, divisor, "")
	unit, divisor = baseUnit(v.Unit, "")
	for _, p := range v.Percentiles {
		c.number(s, v, percentiles, unit, p.Value, divisor, mir.Decimal(p.Of))
	}
}

// number sends a number, unless it is not available.
func (c *collection) number(s *probes.Status, v *probes.LabelledValue, f family, unit, text string, divisor float64, percentile string) {
	number, err := strconv.ParseFloat(text, 64)
	name := f.name(v.Metric, unit)
	if err != nil || !c.room(seriesKey{name, percentile, s.ID, v.LabelledKey}, 1) {
		return
	}
	names, labels := seriesLabels, labelsOf(s, &v.LabelledKey)
	if percentile != "" {
		names, labels = append(names[:len(names):len(names)], "percentile"), append(labels, percentile)
	}
	c.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, f.help(v.Metric), names, nil), f.as, number/divisor, labels...)
}

func (c *collection) histogram(s *probes.Status, h *probes.LabelledHistogram) {
	name := executions.name(h.Metric, "_seconds")
	if !c.room(seriesKey{name, "", s.ID, h.LabelledKey}, len(h.AtMost)+2) {
		return
	}
	buckets := make(map[float64]uint64, len(h.AtMost))
	for bound, count := range h.AtMost {
		buckets[float64(bound)/1e9] = count
	}
	desc := prometheus.NewDesc(name, executions.help(h.Metric), seriesLabels, nil)
	c.out <- prometheus.MustNewConstHistogram(desc, h.Count, float64(h.Sum)/1e9, buckets, labelsOf(s, &h.LabelledKey)...)
}

// unnamable matches what the name of a series cannot contain.
var unnamable = regexp.MustCompile(`[^a-z0-9_]+`)

// name returns the name of a metric's series. The part behind a colon is a label.
func (f family) name(metric, unit string) string {
	base, _, _ := strings.Cut(metric, ":")
	base = unnamable.ReplaceAllString(strings.ToLower(base), "_")
	if strings.Contains(base, unit) { // READ_BYTES
		unit = ""
	}
	return "mirador_probe_" + f.prefix + base + unit + f.suffix
}

func (f family) help(metric string) string {
	base, _, _ := strings.Cut(metric, ":")
	return "The metric " + base + " of labelled probes, " + f.what + "."
}

// labelsOf returns the labels of a value. A label that is no UTF-8 would make the whole answer invalid.
func labelsOf(s *probes.Status, k *probes.LabelledKey) []string {
	_, call, _ := strings.Cut(k.Metric, ":")
	labels := []string{s.Label, s.ID, s.App, s.Region, call, k.Node, k.Process, k.Thread}
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	return labels
}

// baseUnit returns the base unit of a statistic, as the end of a name, and the number of the
// catalog's units in it.
func baseUnit(unit, function string) (suffix string, divisor float64) {
	switch unit {
	case "ms":
		suffix, divisor = "_seconds", 1e3
	case "B":
		suffix, divisor = "_bytes", 1
	default:
		return "", 1
	}
	if mir.Function(function) == mir.Variance {
		return suffix + "_squared", divisor * divisor
	}
	return suffix, divisor
}
