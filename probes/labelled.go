package probes

import (
	"context"
	"slices"

	"mirador/mir"
	"mirador/mir/translate"
)

// Labelled is the values of a probe with a label.
type Labelled struct {
	Status     Status
	Values     []LabelledValue
	Histograms []LabelledHistogram
}

// LabelledKey names a value of a probe. Node, Process and Thread are "" where it is a value of
// several of them.
type LabelledKey struct {
	Metric, Function      string
	Node, Process, Thread string
}

// LabelledValue is a value of a probe.
type LabelledValue struct {
	LabelledKey
	Value       string // a decimal
	Unit        string // as in the catalog
	Kind        ValueKind
	Percentiles []mir.Percentile
}

// ValueKind says what a series of values over time means.
type ValueKind uint8

const (
	Level  ValueKind = iota // as it is now
	Latest                  // of the latest execution or measurement
	Total                   // a sum that only ascends until the probe is reset
)

// LabelledHistogram is how long executions of a region took.
type LabelledHistogram struct {
	LabelledKey
	Count, Sum uint64            // Sum in nanoseconds
	AtMost     map[uint64]uint64 // by bound in nanoseconds, the number of executions that took at most that long
}

// bounds are the bounds of histograms: 1, 2 and 5 in each power of ten from 100 ns to 100 s. They
// never change, because Prometheus adds up histograms by their bounds.
func bounds() (list []uint64) {
	for power := uint64(100); power < 100e9; power *= 10 {
		list = append(list, power, 2*power, 5*power)
	}
	return append(list, 100e9)
}

// Labelled returns the values of the active probes with labels of some applications. It omits
// a probe that cannot be read now.
func (r *Registry) Labelled(ctx context.Context, apps []string) (all []Labelled) {
	for _, name := range apps {
		a, err := r.App(name)
		if err != nil {
			continue // it has been released
		}
		for _, p := range a.Probes() {
			if l, ok := p.labelled(ctx); ok {
				all = append(all, l)
			}
		}
	}
	return all
}

func (p *Probe) labelled(ctx context.Context) (l Labelled, ok bool) {
	p.mu.RLock()
	label, state, measuring := p.request.Label, p.state, p.request.Measuring
	p.mu.RUnlock()
	if label == "" || state != Active {
		return l, false
	}
	p.renew()
	reading, err := p.reading(ctx)
	if err != nil {
		p.complain(ctx, "cannot read a labelled probe", err)
		return l, false
	}
	l.Status = p.Status()
	for _, t := range reading.Tuples().Tuples {
		if t.Value == "" {
			continue
		}
		m := &reading.Plan.Metrics[t.Metric]
		v := LabelledValue{Value: t.Value, Unit: m.Unit, Kind: kindOf(m, reading.Plan, measuring)}
		v.LabelledKey = LabelledKey{Metric: m.Name, Node: t.NodeID, Process: t.ProcessID, Thread: t.ThreadID}
		if len(reading.Plan.Functions) > 0 {
			v.Function = string(reading.Plan.Functions[t.Function])
		}
		if t.Spread != nil {
			v.Percentiles = slices.Clone(t.Spread.Percentiles)
		}
		l.Values = append(l.Values, v)
	}
	l.Histograms = histograms(&reading)
	return l, len(l.Values) > 0
}

// kindOf returns the kind of a metric's last values. Of the metrics on regions, only COUNT is a total.
func kindOf(m *translate.Metric, p *translate.Plan, measuring *mir.Measuring) ValueKind {
	lasts := measuring != nil && measuring.Duration != nil && *measuring.Duration > 0
	switch {
	case m.Kind == "gauge":
		return Level
	case m.Kind == "counter" && !lasts && (!p.OnRegion() || m.Name == "COUNT"):
		return Total
	}
	return Latest
}

// histograms returns the distributions of times in a reading, of each of its entities.
func histograms(r *translate.Reading) (list []LabelledHistogram) {
	for i := range r.Values {
		v := &r.Values[i]
		d := v.Stats.Spread
		if len(d) == 0 || r.Plan.Metrics[v.Metric].Unit != "ms" {
			continue
		}
		h := LabelledHistogram{Count: d.Count(), Sum: v.Stats.Sum.Lo, AtMost: make(map[uint64]uint64)}
		h.LabelledKey = LabelledKey{
			Metric: r.Plan.Metrics[v.Metric].Name, Node: v.Instance.Node, Process: string(v.Instance.Process), Thread: string(v.Instance.Thread),
		}
		for _, bound := range bounds() {
			h.AtMost[bound] = d.AtMost(bound)
		}
		list = append(list, h)
	}
	return list
}
