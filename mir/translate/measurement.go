package translate

import (
	"math"
	"strconv"

	"mirador/mir"
)

// Reading has the values of one probe for a measurement document.
type Reading struct {
	ProbeID string
	Plan    *Plan
	Values  []Value
}

// Document converts readings to a measurement document (MIR 6).
func Document(rs []Reading) *mir.Measurement {
	all := make([]mir.Values, len(rs))
	for i := range rs {
		p := rs[i].Plan
		all[i] = mir.Values{
			ProbeID: rs[i].ProbeID, Metrics: len(p.Metrics), Functions: len(p.Functions),
			Entities: p.requested, Tuples: p.tuples(rs[i].Values),
		}
	}
	return mir.Compress(all)
}

// tuples returns the tuples of a reading. Statistics cover all entities; only minimum and
// maximum name one.
func (p *Plan) tuples(vs []Value) []mir.Tuple {
	if len(p.Functions) > 0 {
		return p.statistics(vs)
	}
	ts := make([]mir.Tuple, len(vs))
	for i := range vs {
		ts[i] = p.tuple(&vs[i].Instance, vs[i].Stats, mir.Last)
		ts[i].Metric = vs[i].Metric
	}
	return ts
}

func (p *Plan) statistics(vs []Value) []mir.Tuple {
	ts := make([]mir.Tuple, 0, len(p.Metrics)*len(p.Functions))
	for m := range p.Metrics {
		for i, f := range p.Functions {
			t := p.statistic(vs, m, f)
			t.Metric, t.Function = m, i
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
		if least == nil || v.Stats.Min < least.Stats.Min {
			least = v
		}
		if most == nil || v.Stats.Max > most.Stats.Max {
			most = v
		}
	}
	switch {
	case f == mir.Minimum && least != nil:
		return p.tuple(&least.Instance, all, f)
	case f == mir.Maximum && most != nil:
		return p.tuple(&most.Instance, all, f)
	}
	return p.tuple(&Instance{}, all, f)
}

// tuple returns a statistic with the ids of the instance. Its value is "" if it is not
// available.
func (p *Plan) tuple(i *Instance, s Stats, f mir.Function) mir.Tuple {
	t := mir.Tuple{
		NodeID: i.Node, ProcessID: string(i.Process), ThreadID: string(i.Thread),
		Sample: s.sample(), Spread: s.spread(p.Percent),
	}
	if v, ok := s.Of(f); ok {
		t.Value = decimal(v, f)
	}
	return t
}

// decimal formats a value without the digits that come from floating point arithmetic.
// Measured values are whole numbers, of nanoseconds or of other units; statistics of many
// values may be finer.
func decimal(v float64, f mir.Function) string {
	const nanosecond = 1e6 // in a millisecond
	const exact = 1 << 53 / nanosecond
	switch {
	case f == mir.Average || f == mir.Variance:
		text := strconv.FormatFloat(v, 'e', 11, 64)
		v, _ = strconv.ParseFloat(text, 64) // FormatFloat wrote it
	case math.Abs(v) < exact:
		v = math.Round(v*nanosecond) / nanosecond
	}
	return mir.Decimal(v)
}
