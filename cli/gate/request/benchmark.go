package request

import (
	"slices"
	"strings"

	"mirador/mir"
	"mirador/mir/translate"
)

// benchmark reads the limits of a Go benchmark, whose metrics are the units of the Go benchmark
// format.
func (r *reader) benchmark(e mir.Element) {
	r.unknown(e, []string{"name"}, nil)
	name := strings.TrimPrefix(value(e, "name"), "Benchmark")
	if name == "" {
		r.fault(e.Pos(), `<%s> names no benchmark; write name="Parse/small" for BenchmarkParse/small`, e.Tag())
		return
	}
	metrics := 0
	for child := range e.Children() {
		if child.Space() != "" || child.Name() != "metric" {
			r.fault(child.Pos(), "<%s> is not allowed here; write <metric>", child.Tag())
			continue
		}
		metrics++
		r.unit(child, Limit{Benchmark: name, Metric: value(child, "name"), Pos: child.Pos()})
	}
	if metrics == 0 {
		r.fault(e.Pos(), `<%s> has no metric; write <metric name="sec/op" g:max="5 ms"/>`, e.Tag())
	}
}

// tidied are the units that the reader of the Go benchmark format replaces.
var tidied = map[string]string{"ns/op": "sec/op", "MB/s": "B/s"}

// exactUnits are the units that do not depend on the load of the machine.
var exactUnits = []string{"allocs/op", "B/op"}

// unit reads the limits of a unit. Numbers and amounts of memory are exact, all others vary from
// run to run.
func (r *reader) unit(e mir.Element, l Limit) {
	r.unknown(e, []string{"name"}, []string{"max", "min", "exact", "max-change"})
	if l.Metric == "" {
		r.fault(l.Pos, `<metric> has no name; write the unit of the benchmark, such as name="sec/op" or "allocs/op"`)
		return
	}
	if tidy, ok := tidied[l.Metric]; ok {
		l.Metric = tidy
	}
	l.Kind, l.Unit = Absolute, "1"
	switch l.Metric {
	case "sec/op":
		l.Unit = "ms"
	case "B/op":
		l.Unit = "B"
	}
	if slices.Contains(exactUnits, l.Metric) {
		l.Kind = Exact
	}
	if _, ok := ofSpace(e, Namespace, "max-change"); ok && strings.HasSuffix(l.Metric, "/s") {
		r.fault(l.Pos, "of %s more is better: write max-change for sec/op, or g:min", l.Metric)
		return
	}
	faults := len(r.faults)
	r.limits(e, &l, translate.Metric{Unit: l.Unit, Kind: "timer"})
	if l.Of = (Of{}); len(r.faults) == faults {
		r.add(l, e)
	}
}
