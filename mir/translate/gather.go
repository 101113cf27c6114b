package translate

import "slices"

// Accumulate adds the values of a measurement to the sums of earlier measurements, entity by
// entity. It appends entities that are new.
func Accumulate(sum, vs []Value) []Value {
	for _, v := range vs {
		if i := find(sum, &v); i >= 0 {
			whole := sum[i].Stats.Whole.then(v.Stats.Whole)
			v.Stats.Whole = nil
			sum[i].Stats.Merge(v.Stats)
			sum[i].Stats.Whole = whole
			continue
		}
		sum = append(sum, v)
	}
	return sum
}

// Keep fills the gaps in vs with the last known values, for processes and threads that have
// ended.
func Keep(last, vs []Value) []Value {
	for i := range vs {
		if j := find(last, &vs[i]); j >= 0 && vs[i].Stats.N == 0 && last[j].Stats.N > 0 {
			vs[i].Stats = last[j].Stats
		}
	}
	return vs
}

// Difference returns the values of a measurement over a time: those at its end minus those at its
// beginning. A thread or process that began in between had no value before, which is 0. A level that
// was not read before, because no thread had executed its region, has no difference.
func Difference(p *Plan, begin, end []Value) (vs []Value) {
	for _, v := range end {
		if v.Stats.N == 0 {
			continue
		}
		m, i, before := p.Metrics[v.Metric], find(begin, &v), uint64(0)
		known := i >= 0 && begin[i].Stats.N > 0
		whole := v.Stats.Whole
		if known {
			before, whole = begin[i].Stats.Last, whole.since(begin[i].Stats.Whole)
		} else {
			whole = whole.since(nil)
		}
		switch after := v.Stats.Last; {
		case whole != nil && whole.Last.N < 0: // as below
			continue
		case whole != nil && p.estimates(m):
			v.Stats = whole.estimate()
		case m.falls && (known || !p.OnRegion()):
			v.Stats = signed(int64(after - before))
		case m.falls, before > after: // in the second case, the values were reset in between
			continue
		default:
			v.Stats = single(after - before)
		}
		v.Stats.Whole = whole
		vs = append(vs, v)
	}
	return vs
}

// find returns the index of the value of the same metric and entity.
func find(vs []Value, v *Value) int {
	return slices.IndexFunc(vs, func(w Value) bool { return w.Metric == v.Metric && w.Instance == v.Instance })
}
