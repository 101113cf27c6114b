package translate

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"mirador/mir"
)

// Metric is a row of the metric catalog (MIR 8). The translation, the gateway's catalog and
// the reference page all read this table.
type Metric struct {
	Space    string           `json:"space" xml:"space,attr"` // name space: MIR, Linux or PAPI
	Name     string           `json:"name" xml:"name,attr"`
	Unit     string           `json:"unit" xml:"unit,attr"` // "1" for plain numbers
	Kind     string           `json:"kind" xml:"kind,attr"` // "counter", "timer" or "gauge"
	Entities []mir.EntityKind `json:"entities" xml:"entity"`
	Region   bool             `json:"region" xml:"region,attr"`            // it can be measured on a region
	Alone    bool             `json:"alone" xml:"alone,attr"`              // it can be measured without a region
	Doc      string           `json:"what" xml:"what"`                     // what it measures
	Measured string           `json:"how" xml:"how"`                       // how it is measured
	Cost     string           `json:"cost,omitempty" xml:"cost,omitempty"` // placement and rough figure
	// Aggregate says over which values aggregates are computed, by one rule for all metrics (doc/mir-semantics.md).
	Aggregate string `json:"aggregates,omitempty" xml:"aggregates,omitempty"`
	// Needs says what the machine or the program must have so that the metric can be measured.
	Needs string `json:"needs,omitempty" xml:"needs,omitempty"`
	// Unavailable is the reason why it cannot be measured, here or at all; "" if it can.
	Unavailable string `json:"unavailable,omitempty" xml:"unavailable,omitempty"`

	source source
	falls  bool     // it is a level, whose differences may be negative
	level  string   // on a region: the level that pa_timer_take_level reads of the process
	begin  []event  // what counts, or starts an interval: fromEvents, betweenEvents
	end    []event  // what ends an interval: betweenEvents
	funcs  []string // functions of libraries whose beginnings are in begin, and whose ends are in end
	amount bool     // fromEvents: add a parameter of the event instead of 1, unless it is negative
	params []string // of amount at functions: which parameter of the event to add for each of funcs
	byCall bool     // exists for each system call, as NAME:CALL
	clock  string   // clock of the timer of betweenEvents; "": wall clock time
	info   info     // components of fromInfo and fromNode
	// elsewhere says why it is not measured on a region, and what to use there.
	elsewhere string
	// millionths says that values are not whole numbers; they are kept in millionths.
	millionths bool
	meter      string // event of perf that fromMeter counts
	task       string // on a region: clock of a timer that shows what the kernel, or a counter of the processor, counts for the thread
}

// source tells which service the values of a metric come from.
type source uint8

const (
	fromCounter source = iota + 1
	fromTimer
	fromCPUTimer
	fromThreads
	fromInfo
	fromTask // only on a region
	fromNode
	fromEvents
	betweenEvents
	fromMeter // not on regions: see Metric.task
)

// Name spaces of metrics (MIR 8), one for each provider. A name without a name space is looked
// for in all of them, in this order.
const (
	MIR   = "mir"   // Table 1 of MIR's report, and what the report's text names
	Linux = "linux" // what Linux counts and times
	PAPI  = "papi"  // counters of the processor, by the names of PAPI's presets
)

// spaces lists the name spaces.
var spaces = []string{MIR, Linux, PAPI}

// Catalog returns the known metrics in alphabetical order, also those that cannot be measured.
func Catalog() []Metric { return slices.Clone(rows()) }

// rows makes the catalog once, because each metric of a request is looked for in it. The rows must not be
// changed.
var rows = sync.OnceValue(func() []Metric {
	list := slices.Concat(inSpace(MIR, mirMetrics()), inSpace(MIR, virtualMachineMetrics()), inSpace(Linux, linuxMetrics()), inSpace(PAPI, hardwareMetrics()))
	slices.SortStableFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
})

// inSpace completes the rows of a name space.
func inSpace(space string, list []Metric) []Metric {
	for i := range list {
		m := &list[i]
		own := m.source == fromCounter || m.times()
		m.Space, m.Cost, m.Needs, m.Alone, m.Region = space, m.cost(), m.needs(), !own, own || m.gains()
		m.Aggregate = m.aggregates()
	}
	return list
}

// aggregates describes the values over which aggregates of the metric are computed (MIR 4), by one
// rule for all metrics.
func (m Metric) aggregates() string {
	if m.Unavailable != "" {
		return ""
	}
	var cases []string
	switch {
	case m.source == fromCounter:
		cases = append(cases, "on a region 1 for each execution")
	case m.level != "":
		cases = append(cases, "on a region those at the beginnings and ends of executions")
	case m.Region:
		cases = append(cases, "on a region that of each execution")
	}
	cases = append(cases, "with an interval or a duration those at these times")
	if m.Alone {
		cases = append(cases, "otherwise those that requests have asked for")
	}
	return "over all values measured since the probe was activated or reset, of all its entities: " + strings.Join(cases, ", ")
}

// metric finds a row by its name, which may begin with a name space and end with the name of a
// system call. If a metric exists both with and without a region, metric returns the row that
// matches region.
func metric(name string, region bool) (found Metric, ok bool) {
	space, name := splitSpace(name)
	base, of, particular := strings.Cut(name, ":")
	all := rows()
	for i := range all {
		switch m := &all[i]; {
		case space != "" && space != m.Space:
		case m.Name == name && (!ok || m.Alone != region):
			found, ok = *m, true
		case particular && m.Name == base && m.byCall:
			return m.of(of)
		}
	}
	return found, ok
}

// With returns the metric, and adds to Unavailable the reason why the machine lacks it, if it does.
func (m Metric) With(lacks func(Metric) string) Metric {
	if lacks == nil {
		return m
	}
	switch here := lacks(m); {
	case here == "":
	case m.Unavailable == "":
		m.Unavailable = here
	default:
		m.Unavailable += "; " + here
	}
	return m
}

// Event returns the event that the machine must be able to count for the metric, by its name in
// the command perf; "" if the metric needs none.
func (m Metric) Event() string { return m.meter }

// OnScheduling reports whether the metric is measured where threads get and lose processors.
func (m Metric) OnScheduling() bool {
	return len(m.begin) > 0 && strings.Contains(m.begin[0].service, "_has_blocked")
}

// splitSpace separates a name space from the name of a metric; it is "" if there is none.
func splitSpace(name string) (space, rest string) {
	if space, rest, found := strings.Cut(name, ":"); found && slices.Contains(spaces, space) {
		return space, rest
	}
	return "", name
}

// supports reports whether m can be measured for an entity of this kind.
func (m Metric) supports(kind mir.EntityKind) bool {
	if kind == mir.Site { // of one node
		kind = mir.Node
	}
	return kind == "" || slices.Contains(m.Entities, kind) // "": the application as a whole
}

// spelled returns the name for messages: with its name space, unless that is MIR.
func (m Metric) spelled() string {
	if m.Space == MIR {
		return m.Name
	}
	return m.Space + ":" + m.Name
}

// unknown explains why there is no such metric.
func unknown(name string) string {
	_, base := splitSpace(name)
	base, parameter, _ := strings.Cut(base, ":")
	if m, ok := metric(base, false); ok && m.byCall && (strings.HasPrefix(parameter, "%") || parameter == "*") {
		return "no metric " + name + ": a metric is of all system calls, of one name or of one class; the classes of system calls are %" + strings.Join(slices.Sorted(maps.Keys(classes)), ", %") + "; \"mirador syscalls\" measures each call"
	}
	return "no metric " + name + nearMetrics(name) + "; GET /catalog lists the metrics"
}
