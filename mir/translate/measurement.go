package translate

import "mirador/mir"

// Reading has the values of one probe for a measurement document.
type Reading struct {
	ProbeID string
	Plan    *Plan
	Values  []Value
}

// Document converts readings to a measurement document (MIR 6).
func Document(rs []Reading) *mir.Measured {
	all := make([]mir.Values, len(rs))
	for i := range rs {
		all[i] = rs[i].Tuples()
	}
	return &mir.Measured{Probes: all}
}

// Tuples converts a reading to the tuples of its measurement document.
func (r *Reading) Tuples() mir.Values {
	return mir.Values{
		ProbeID: r.ProbeID, Metrics: len(r.Plan.Metrics), Functions: len(r.Plan.Functions),
		Entities: r.Plan.requested, Tuples: r.Plan.tuples(r.Values),
	}
}

// tuples returns the tuples of a reading. Statistics cover all entities; only minimum and
// maximum name one.
func (p *Plan) tuples(vs []Value) []mir.Tuple {
	if len(p.Functions) > 0 {
		return p.statistics(vs)
	}
	ts := make([]mir.Tuple, len(vs))
	for i := range vs {
		ts[i] = p.tuple(&vs[i].Instance, vs[i].Stats, vs[i].Metric, mir.Last)
	}
	return ts
}

func (p *Plan) statistics(vs []Value) []mir.Tuple {
	ts := make([]mir.Tuple, 0, len(p.Metrics)*len(p.Functions))
	for m := range p.Metrics {
		for i, f := range p.Functions {
			t := p.statistic(vs, m, f)
			t.Function = i
			ts = append(ts, t)
		}
	}
	return ts
}

func (p *Plan) statistic(vs []Value, metric int, f mir.Function) mir.Tuple {
	var all Stats
	var least, most *Value
	for i := range vs {
		v := &vs[i]
		if v.Metric != metric {
			continue
		}
		all.Merge(v.Stats)
		if v.Stats.N == 0 {
			continue
		}
		if least == nil || v.Stats.below(v.Stats.Min, least.Stats.Min) {
			least = v
		}
		if most == nil || v.Stats.below(most.Stats.Max, v.Stats.Max) {
			most = v
		}
	}
	switch {
	case f == mir.Minimum && least != nil:
		return p.tuple(&least.Instance, all, metric, f)
	case f == mir.Maximum && most != nil:
		return p.tuple(&most.Instance, all, metric, f)
	}
	return p.tuple(&Instance{}, all, metric, f)
}

// tuple returns a statistic with the ids of the instance. Its value is "" if it is not
// available.
func (p *Plan) tuple(i *Instance, s Stats, metric int, f mir.Function) mir.Tuple {
	u := p.Metrics[metric].unit()
	of := s.executions(len(p.Functions) > 0)
	return mir.Tuple{
		SiteID: i.Site, NodeID: i.Node, ProcessID: string(i.Process), ThreadID: string(i.Thread), Metric: metric,
		Value: s.text(f, u), Sample: sampleShown(p, of, metric), Spread: of.spread(p.Percent, u),
	}
}
