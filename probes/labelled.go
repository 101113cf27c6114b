package probes

import (
	"context"
	"slices"

	"mirador/mir"
)

// Labelled is the values of a probe with a label.
type Labelled struct {
	Status Status
	Values []LabelledValue
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
	Percentiles []mir.Percentile
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
	label, state := p.request.Label, p.state
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
		v := LabelledValue{Value: t.Value}
		v.LabelledKey = LabelledKey{Metric: reading.Plan.Metrics[t.Metric].Name, Node: t.NodeID, Process: t.ProcessID, Thread: t.ThreadID}
		if len(reading.Plan.Functions) > 0 {
			v.Function = string(reading.Plan.Functions[t.Function])
		}
		if t.Spread != nil {
			v.Percentiles = slices.Clone(t.Spread.Percentiles)
		}
		l.Values = append(l.Values, v)
	}
	return l, len(l.Values) > 0
}
