//go:build linux

package calibrate

import (
	"slices"

	"mirador/omis/program"
)

// trial is one way to probe a function: hits are counted at a place, or intervals are
// timed from one place to another.
type trial struct {
	begin, end string // kinds; end is "" if hits are only counted
	function   int
	minor      bool // run does not make more batches for this trial

	rows      func() ([]program.Row, error) // rows of the store of intervals, if timed
	before    total
	calls     int       // of a batch
	bare      float64   // duration of a call without probes
	bareTimed float64   // the same, of calls whose intervals are measured
	probed    []float64 // duration of a call with probes, by batch
	measured  []float64 // mean of the intervals, by batch
	intervals float64   // number of intervals in a batch
}

// total holds the sums of a store of intervals.
type total struct{ count, sum float64 }

func (t *trial) timed() bool { return t.end != "" }

// sites lists the places of a function where a placement can begin and end intervals: the
// first place of each kind.
type sites struct {
	clock      program.Clock
	oneIn      int64 // see program.Op
	begin, end []site
	filling    []site // where intervals may end that are counted in a histogram
	traced     []site // where records may be appended; only in one of several sites that differ in the clock
	counted    []site // where hits are counted, if no time can be measured anywhere
}

// some is the OneIn of sampled trials: large enough that the processor predicts the
// intervals that are not timed, and small enough that a batch times many.
const some = 50

type site struct {
	kind   string
	offset uint64
}

// enter adds a place, unless the list has one of its kind.
func enter(list []site, kind string, at uint64) []site {
	if at := find(list, kind); at != nil {
		return list
	}
	return append(list, site{kind, at})
}

func find(list []site, kind string) *site {
	if i := slices.IndexFunc(list, func(s site) bool { return s.kind == kind }); i >= 0 {
		return &list[i]
	}
	return nil
}

// trials returns trials for the costs of all kinds. Each kind is counted; intervals go
// from the first kind to each kind of end, and from each kind of beginning to the first
// kind of end, which are the kinds at most functions.
func (s *sites) trials() (list []*trial) {
	for _, place := range s.counted {
		list = append(list, &trial{begin: place.kind})
	}
	if len(s.counted) > 0 {
		return number(list)
	}
	if len(s.begin) == 0 || len(s.end) == 0 {
		return nil
	}
	for i, place := range slices.Concat(s.begin, s.end) {
		if i < len(s.begin) || find(s.begin, place.kind) == nil {
			list = append(list, &trial{begin: place.kind})
		}
	}
	for _, end := range s.end {
		list = append(list, &trial{begin: s.begin[0].kind, end: end.kind})
	}
	for _, begin := range s.begin[1:] {
		list = append(list, &trial{begin: begin.kind, end: s.end[0].kind})
	}
	for _, end := range s.measured(s.filling) {
		list = append(list, &trial{begin: s.begin[0].kind, end: end.kind, minor: true})
	}
	for _, place := range s.traced {
		list = append(list, &trial{begin: place.kind, minor: true})
	}
	return number(list)
}

// number assigns each trial a function of its own.
func number(list []*trial) []*trial {
	list = list[:max(0, min(len(list), functions-1))]
	for i, t := range list {
		t.function = 1 + i // the first function is not probed
	}
	return list
}

// where returns the offset of the trial's first place.
func (s *sites) where(t *trial) uint64 {
	return find(slices.Concat(s.begin, s.end, s.traced, s.counted), t.begin).offset
}

// until returns the offset where the trial's intervals end.
func (s *sites) until(t *trial) uint64 {
	return find(slices.Concat(s.end, s.filling), t.end).offset
}

// fillsHistogram reports whether the trial's intervals are counted in a histogram.
func (s *sites) fillsHistogram(t *trial) bool { return find(s.filling, t.end) != nil }

// appends reports whether the trial appends records.
func (s *sites) appends(t *trial) bool { return find(s.traced, t.begin) != nil }

// read returns the mean of the intervals since the last call.
func (t *trial) read() (mean float64, ok bool, err error) {
	if t.rows == nil {
		return 0, false, nil
	}
	rows, err := t.rows()
	if err != nil {
		return 0, false, err
	}
	var now total
	for _, r := range rows {
		now.count += float64(r.Count)
		now.sum += float64(r.Sum.Hi)*(1<<64) + float64(r.Sum.Lo)
	}
	was := t.before
	t.before = now
	if now.count == was.count {
		return 0, false, nil
	}
	t.intervals = now.count - was.count
	return (now.sum - was.sum) / t.intervals, true, nil
}

// costs computes the cost of each kind from the trials. The moment of the clock read
// within a hit is arbitrary, as long as After of a beginning and Before of an end add up
// to what an interval contains of both.
func (s *sites) costs(list []*trial) map[string]program.Cost {
	all := make(map[string]program.Cost)
	change := func(kind string, f func(*program.Cost)) {
		c := all[kind]
		f(&c)
		all[kind] = c
	}
	if len(s.counted) > 0 {
		for _, t := range list {
			change(t.begin, func(c *program.Cost) { c.Count = max(t.added(), 0) })
		}
		return all
	}
	begin, end := s.begin[0].kind, s.end[0].kind
	var extra float64 // what timing costs more than counting
	for _, t := range list {
		switch {
		case !t.timed():
			change(t.begin, func(c *program.Cost) { c.Count = max(t.added(), 0) })
		case s.fillsHistogram(t):
		case t.begin == begin && t.end == end:
			extra = max(t.added()-all[begin].Count-all[end].Count, 0) / 2
			change(end, func(c *program.Cost) { c.Before = c.Count / 2 })
			change(begin, func(c *program.Cost) { c.After = t.inside() - all[end].Before })
		case t.begin == begin:
			change(t.end, func(c *program.Cost) { c.Before = t.inside() - all[begin].After })
		default:
			change(t.begin, func(c *program.Cost) { c.After = t.inside() - all[end].Before })
		}
	}
	for kind := range all {
		if find(s.traced, kind) == nil {
			change(kind, func(c *program.Cost) { c.Time = c.Count + extra })
		}
	}
	for _, t := range list {
		if s.fillsHistogram(t) {
			all[t.end] = s.inHistogram(t, all)
		}
	}
	return all
}

// inHistogram returns the cost of the end of an interval that is counted in a histogram.
// The beginning costs the same as without a histogram.
func (s *sites) inHistogram(t *trial, all map[string]program.Cost) (c program.Cost) {
	begin := all[t.begin]
	for _, at := range s.end {
		if at.offset == s.until(t) {
			c = all[at.kind]
		}
	}
	c.Time, c.Before = max(t.added()-begin.Time, c.Count), t.inside()-begin.After
	return c
}

// measured returns the places that have trials of their own: for sampled sites none,
// because the cost follows from the sites without sampling.
func (s *sites) measured(list []site) []site {
	if s.oneIn > 1 {
		return nil
	}
	return list
}

// spread separates the costs of timed and other occurrences at sampled sites: a timed
// occurrence costs what an occurrence costs at the same place, by the same clock, if all are
// timed. It deletes places whose cost in this case is not known.
func (s *sites) spread(costs, all map[string]program.Cost, groups []*sites) {
	like := make(map[string]string) // by kind, which may be both in begin and in end
	filling := make(map[string]string)
	for _, timed := range groups {
		if timed.clock == s.clock && timed.oneIn == 0 {
			pair(like, slices.Concat(s.begin, s.end), slices.Concat(timed.begin, timed.end))
			pair(filling, s.filling, timed.filling)
		}
	}
	for kind, c := range costs {
		one, ok := all[like[kind]]
		if !ok {
			delete(costs, kind)
			continue
		}
		c.Count, c.Time, c.Rough = max((c.Time-one.Time/some)/(1-1.0/some), 0), one.Time, c.Rough || one.Rough
		costs[kind] = c
	}
	plain := make(map[string]string)
	pair(plain, s.filling, s.end)
	for _, at := range s.filling {
		c, known := costs[plain[at.kind]]
		one, ok := all[filling[at.kind]]
		if known && ok {
			c.Time, c.Rough = one.Time, c.Rough || one.Rough
			costs[at.kind] = c
		}
	}
}

// pair maps the kinds of a list's places to the kinds of the same places in another list.
func pair(like map[string]string, list, other []site) {
	for _, at := range list {
		for _, same := range other {
			if same.offset == at.offset {
				like[at.kind] = same.kind
			}
		}
	}
}
