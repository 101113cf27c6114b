// Package request reads gate files: MIR requests whose metrics have limits, in the namespace
// urn:mirador:gate. Every error has its position in the file. It knows the catalog of metrics,
// but no gateway and no program; the packages of the gate and the command line import it. It
// starts no goroutines.
package request

import (
	"slices"

	"mirador/mir"
)

// Namespace is the namespace of the limits.
const Namespace = "urn:mirador:gate"

// Kind says how an assertion is judged. The kinds are never mixed.
type Kind string

const (
	Exact    Kind = "exact"    // a number of events or an amount, without statistics
	Absolute Kind = "absolute" // a time, with an interval
	Relative Kind = "relative" // a time of head against the same of base
)

// Of is the statistic of a time that is compared.
type Of struct {
	Percent float64 // a percentile; 0: see Mean
	Mean    bool    // the average of all executions; false without Percent: the metric's own value
}

// Limit is one assertion about a metric.
type Limit struct {
	Kind     Kind
	Region   string // the unit, "" for metrics without a region
	To       string // the unit whose end ends the region
	Metric   string
	Unit     string // of Min and Max: that of the metric
	Of       Of
	Min, Max *float64
	Equal    bool    // exact: head has the value of base
	Limited  bool    // relative, and exact with a base: head has at most Change more than base
	Change   float64 // 0.03 for 3 %
	Fast     bool    // the clock
	Text     string  // the limits as written
	Pos      mir.Position

	Number         int    // of the limit in the file
	Request, Index int    // the number of the request in the file, and of the metric in the request
	Benchmark      string // the Go benchmark that has the value, instead of a program; "" for requests
}

// Compared reports whether the limit compares with a base.
func (l *Limit) Compared() bool { return l.Equal || l.Limited }

// File is a gate file. Metrics has the number of metrics of each request.
type File struct {
	Limits  []Limit
	Metrics []int
}

// NeedsBase reports whether some limit compares with a base.
func (f *File) NeedsBase() bool {
	return slices.ContainsFunc(f.Limits, func(l Limit) bool { return l.Compared() })
}

// Of returns the limits of a kind.
func (f *File) Of(k Kind) (list []Limit) {
	for _, l := range f.Limits {
		if l.Kind == k {
			list = append(list, l)
		}
	}
	return list
}

func (f *File) append(l Limit) {
	l.Number = len(f.Limits)
	f.Limits = append(f.Limits, l)
}

// Select returns a file with the limits of Go benchmarks only, or with all others.
func (f *File) Select(benchmarks bool) *File {
	part := &File{Metrics: f.Metrics}
	for _, l := range f.Limits {
		if (l.Benchmark != "") == benchmarks {
			part.append(l)
		}
	}
	return part
}

// Parse reads a gate file. Errors have type *mir.Error.
func Parse(text []byte) (*File, error) {
	tree, err := mir.Scan(text, mir.RequestLimits())
	if err != nil {
		return nil, err
	}
	r := &reader{file: &File{}}
	r.root(tree.Root())
	if len(r.faults) > 0 {
		return nil, mir.NewInvalid(r.faults)
	}
	return r.file, nil
}
