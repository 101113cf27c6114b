//go:build linux

package calibrate

import (
	"slices"

	"mirador/omis"
)

// trial is one way to probe a function: it is counted at a place, or timed from one
// place to another.
type trial struct {
	begin, end string // kinds; end "": only counted
	function   int
	minor      bool // no more batches are made for its sake

	rows      func() ([]omis.Row, error) // of what it measures, if it times
	before    total
	calls     int       // of a batch
	bare      float64   // what a call takes without probes
	probed    []float64 // and with them, of each batch
	measured  []float64 // the mean of the intervals, of each batch
	intervals float64   // that a batch measures
}

// total is what a store of intervals says.
type total struct{ count, sum float64 }

func (t *trial) timed() bool { return t.end != "" }

// sites are the places of a function, by kinds, that a placement finds there: the first
// of each kind, where an interval may begin and where it may end.
type sites struct {
	clock      omis.Clock
	oneIn      int64 // see omis.Op
	begin, end []site
	filling    []site // where intervals may end that are counted in a histogram
	traced     []site // where records may be appended; only in one of those that differ by clocks
	counted    []site // where hits are counted, if no time can be measured anywhere
}

// some is how many intervals there are for one that is timed, where that makes a
// difference: enough for the processor to foresee the others, and few enough for a batch to
// have many that are timed.
const some = 50

type site struct {
	kind   string
	offset uint64
}

// enter takes a place in, unless there is one of its kind.
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

// trials are those that tell the costs of all kinds. Each is counted; intervals go from
// the first kind to each where one may end, and from each where one may begin to the
// first of the others: that is where most functions begin and end.
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

// number gives each trial a function of its own.
func number(list []*trial) []*trial {
	list = list[:max(0, min(len(list), functions-1))]
	for i, t := range list {
		t.function = 1 + i // the first is not probed
	}
	return list
}

// where is the offset of a trial's first place, which may be one that is only counted.
func (s *sites) where(t *trial) uint64 {
	return find(slices.Concat(s.begin, s.end, s.traced, s.counted), t.begin).offset
}

// until is where its interval ends.
func (s *sites) until(t *trial) uint64 {
	return find(slices.Concat(s.end, s.filling), t.end).offset
}

// fillsHistogram tells whether its intervals are counted in one.
func (s *sites) fillsHistogram(t *trial) bool { return find(s.filling, t.end) != nil }

// appends tells whether it has records appended.
func (s *sites) appends(t *trial) bool { return find(s.traced, t.begin) != nil }

// read returns the mean of the intervals since it was called last.
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

// costs are what the trials say of each kind. Where within a hit the time is taken does
// not matter, as long as the costs of a beginning and an end make what an interval
// contains of both.
func (s *sites) costs(list []*trial) map[string]omis.Cost {
	all := make(map[string]omis.Cost)
	change := func(kind string, f func(*omis.Cost)) {
		c := all[kind]
		f(&c)
		all[kind] = c
	}
	if len(s.counted) > 0 {
		for _, t := range list {
			change(t.begin, func(c *omis.Cost) { c.Count = max(t.added(), 0) })
		}
		return all
	}
	begin, end := s.begin[0].kind, s.end[0].kind
	var extra float64 // what it takes to time, beside counting
	for _, t := range list {
		switch {
		case !t.timed():
			change(t.begin, func(c *omis.Cost) { c.Count = max(t.added(), 0) })
		case s.fillsHistogram(t):
		case t.begin == begin && t.end == end:
			extra = max(t.added()-all[begin].Count-all[end].Count, 0) / 2
			change(end, func(c *omis.Cost) { c.Before = c.Count / 2 })
			change(begin, func(c *omis.Cost) { c.After = t.inside() - all[end].Before })
		case t.begin == begin:
			change(t.end, func(c *omis.Cost) { c.Before = t.inside() - all[begin].After })
		default:
			change(t.begin, func(c *omis.Cost) { c.After = t.inside() - all[end].Before })
		}
	}
	for kind := range all {
		if find(s.traced, kind) == nil {
			change(kind, func(c *omis.Cost) { c.Time = c.Count + extra })
		}
	}
	for _, t := range list {
		if s.fillsHistogram(t) {
			all[t.end] = s.inHistogram(t, all)
		}
	}
	return all
}

// inHistogram is what it costs to end an interval that is counted in a histogram. To begin
// it costs what it costs otherwise.
func (s *sites) inHistogram(t *trial, all map[string]omis.Cost) (c omis.Cost) {
	begin := all[t.begin]
	for _, at := range s.end {
		if at.offset == s.until(t) {
			c = all[at.kind]
		}
	}
	c.Time, c.Before = max(t.added()-begin.Time, c.Count), t.inside()-begin.After
	return c
}

// measured are the places that there are trials of: where one in some is timed, what comes
// on top of that is known from those where all are.
func (s *sites) measured(list []site) []site {
	if s.oneIn > 1 {
		return nil
	}
	return list
}

// spread is for sites where one in some is timed, and tells apart what costs are then: what
// is known of the same places by the same clock, where all are timed, is what those cost
// that are. Of a place that could not be had then, nothing is known.
func (s *sites) spread(costs, all map[string]omis.Cost, groups []*sites) {
	like := make(map[string]string) // a kind may be both in begin and in end
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
		c.Count, c.Time = max((c.Time-one.Time/some)/(1-1.0/some), 0), one.Time
		costs[kind] = c
	}
	plain := make(map[string]string)
	pair(plain, s.filling, s.end)
	for _, at := range s.filling {
		c, known := costs[plain[at.kind]]
		one, ok := all[filling[at.kind]]
		if known && ok {
			c.Time = one.Time
			costs[at.kind] = c
		}
	}
}

// pair notes which kinds places are of in another list.
func pair(like map[string]string, list, other []site) {
	for _, at := range list {
		for _, same := range other {
			if same.offset == at.offset {
				like[at.kind] = same.kind
			}
		}
	}
}
