package translate

import "mirador/mir"

// Reading is what was measured by a probe: everything that a measurement
// document says about it.
type Reading struct {
	ProbeID string
	Plan    *Plan
	Values  []Value
}

// elements generates a measurement element for each tuple (MIR 6, rule 1), in
// the order of the request: entity by entity, then metric by metric. Statistics
// are taken over all entities; only the extremes have one.
func (r *Reading) elements() []mir.Measurement {
	var es []mir.Measurement
	if len(r.Plan.Functions) == 0 {
		for _, v := range r.Values {
			es = append(es, r.element(&v.Instance, v.Stats, mir.Last))
		}
		return es
	}
	for m := range r.Plan.Metrics {
		for _, f := range r.Plan.Functions {
			es = append(es, r.statistic(m, f))
		}
	}
	return es
}

// statistic is the element of an aggregation.
func (r *Reading) statistic(metric int, f mir.Function) mir.Measurement {
	var all Stats
	var least, most *Value
	for i := range r.Values {
		v := &r.Values[i]
		if v.Metric != metric || v.Stats.N == 0 {
			continue
		}
		all.Merge(v.Stats)
		if least == nil || v.Stats.Min < least.Stats.Min {
			least = v
		}
		if most == nil || v.Stats.Max > most.Stats.Max {
			most = v
		}
	}
	switch {
	case f == mir.Minimum && least != nil:
		return r.element(&least.Instance, all, f)
	case f == mir.Maximum && most != nil:
		return r.element(&most.Instance, all, f)
	}
	return r.element(&Instance{}, all, f)
}

// element is a tuple; a value that cannot be had is an element without one.
func (r *Reading) element(i *Instance, s Stats, f mir.Function) mir.Measurement {
	e := mir.Measurement{
		ProbeID: r.ProbeID, NodeID: string(i.Node),
		ProcessID: string(i.Process), ThreadID: string(i.Thread),
	}
	if v, ok := s.Of(f); ok {
		e.Value = mir.Decimal(v)
	}
	return e
}

// Document writes readings as a measurement document.
func Document(rs []Reading) *mir.Measurement {
	var es []mir.Measurement
	for i := range rs {
		es = append(es, rs[i].elements()...)
	}
	if len(es) == 1 {
		return &es[0]
	}
	return &mir.Measurement{Children: es}
}
