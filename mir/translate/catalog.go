package translate

import (
	"strings"

	"mirador/mir"
)

// Metric is a row of the metric catalog (MIR 8): the one table that the
// translation, the gateway's catalog and the reference page read.
type Metric struct {
	Name     string
	Unit     string // "1" for plain numbers
	Kind     string // "counter", "timer" or "gauge"
	Region   bool   // measured where a region is executed; else wherever it is asked for
	Entities []mir.EntityKind
	Doc      string // what it is
	Measured string // how it is measured

	source source
}

// source is the service that a metric's values come from.
type source uint8

const (
	fromCounter source = iota
	fromTimer
	fromThreads
	fromCPU
)

// Catalog lists the metrics that can be measured, in alphabetical order.
func Catalog() []Metric {
	all := []mir.EntityKind{mir.Node, mir.Process, mir.Thread}
	return []Metric{
		{
			Name: "COUNT", Unit: "1", Kind: "counter", Region: true, Entities: all, source: fromCounter,
			Doc:      "How often the region was executed since the probe was activated or reset.",
			Measured: "pa_counter_add at the region's entry",
		},
		{
			Name: "CPU_TIME", Unit: "ms", Kind: "gauge", Entities: all, source: fromCPU,
			Doc:      "CPU time used since the start, user and system together.",
			Measured: "proc_get_info, thread_get_info: read from /proc, nothing is stopped",
		},
		{
			Name: "THREAD_COUNT", Unit: "1", Kind: "gauge", Entities: all[:2], source: fromThreads,
			Doc:      "The current number of live threads.",
			Measured: "thread_get_info: read from /proc, nothing is stopped",
		},
		{
			Name: "WC_TIME", Unit: "ms", Kind: "timer", Region: true, Entities: all, source: fromTimer,
			Doc:      "Wall clock time from entering the region to leaving it, of one execution: the last one, for processes and nodes that of the thread that came to the region last.",
			Measured: "pa_timer_start at the region's entry, pa_timer_stop at each of its exits",
		},
	}
}

// metric finds a row by its name.
func metric(name string) (Metric, bool) {
	for _, m := range Catalog() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// namesOf lists the metrics with or without a region, for messages.
func namesOf(region bool) string {
	var names []string
	for _, m := range Catalog() {
		if m.Region == region {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

// supports tells whether m can be measured for an entity of this kind.
func (m Metric) supports(kind mir.EntityKind) bool {
	for _, k := range m.Entities {
		if k == kind {
			return true
		}
	}
	return kind == "" // the application as a whole
}
