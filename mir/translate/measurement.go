package translate

import (
	"math"
	"strconv"

	"mirador/mir"
)

// Reading is what was measured by a probe: everything that a measurement
// document says about it.
type Reading struct {
	ProbeID string
	Plan    *Plan
	Values  []Value
}

// Document writes readings as a measurement document (MIR 6).
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

// tuples generates the tuples of a reading. Statistics are taken over all
// entities; of these, only the extremes name one.
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

// tuple is a statistic with the ids of the instance. A value that cannot be had
// is "".
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

// decimal writes a value down without what is only the rounding of floating point numbers.
// Whatever is measured is a whole number of nanoseconds, or of something else; what is
// computed from many of these may be finer.
func decimal(v float64, f mir.Function) string {
	const nanosecond = 1e6 // in a millisecond
	const exact = 1 << 53 / nanosecond
	switch {
	case f == mir.Average || f == mir.Variance:
		text := strconv.FormatFloat(v, 'e', 11, 64)
		v, _ = strconv.ParseFloat(text, 64) // it was written by us
	case math.Abs(v) < exact:
		v = math.Round(v*nanosecond) / nanosecond
	}
	return mir.Decimal(v)
}
