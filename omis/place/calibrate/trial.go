//go:build linux && amd64

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

	rows     func() ([]omis.Row, error) // of what it measures, if it times
	before   total
	bare     []float64 // what a call takes, of each batch without probes
	probed   []float64 // and with them
	measured []float64 // the mean of the intervals, of each batch with probes
}

// total is what a store of intervals says.
type total struct{ count, sum float64 }

func (t *trial) timed() bool { return t.end != "" }

// sites are the places of each kind in a function, as a placement sees them.
type sites struct {
	kinds      []string
	begin, end map[string]uint64 // by kind
}

// enter takes a place in, unless there is one of its kind.
func (s *sites) enter(kind string, to map[string]uint64, at uint64) {
	if _, have := to[kind]; have {
		return
	}
	to[kind] = at
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// trials are those that tell the costs of all kinds: each is counted, and timed where it
// can be with itself, else from or to the reference, the first that can be both.
func (s *sites) trials() (list []*trial, reference string) {
	i := slices.IndexFunc(s.kinds, func(k string) bool { return s.has(s.begin, k) && s.has(s.end, k) })
	if i < 0 {
		return nil, ""
	}
	reference = s.kinds[i]
	for _, k := range s.kinds {
		begins, ends := s.has(s.begin, k), s.has(s.end, k)
		list = append(list, &trial{begin: k})
		if begins && (ends || k != reference) {
			end := k
			if !ends {
				end = reference
			}
			list = append(list, &trial{begin: k, end: end})
		}
		if ends && k != reference {
			list = append(list, &trial{begin: reference, end: k})
		}
	}
	list = list[:min(len(list), functions-1)]
	for i, t := range list {
		t.function = i + 1
	}
	return list, reference
}

func (*sites) has(of map[string]uint64, kind string) bool {
	_, ok := of[kind]
	return ok
}

// where is the offset of a trial's first place.
func (s *sites) where(t *trial) uint64 {
	if at, ok := s.begin[t.begin]; ok {
		return at
	}
	return s.end[t.begin] // one that can only be counted
}

// Batches take a fraction of a millisecond, so that they are rarely interrupted.
const (
	rounds  = 40
	batch   = 2e5 // nanoseconds
	warmUp  = 4   // calls, in which is made what is made once: rows, copies of code
	fewest  = 8
	most    = 2000
	howLong = 200 // rounds of work, some 50 ns
)

// run measures the trials in turns with the function that is not probed.
func (d *process) run(list []*trial) error {
	calls := make([]int, len(list))
	for i, t := range list {
		if _, err := d.call(t.function, warmUp, howLong); err != nil {
			return err
		}
		ns, err := d.call(t.function, warmUp, howLong)
		if err != nil {
			return err
		}
		calls[i] = min(most, max(fewest, int(batch/ns)))
	}
	for range rounds {
		for i, t := range list {
			if err := t.turn(d, calls[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *trial) turn(d *process, calls int) error {
	if _, _, err := t.read(); err != nil {
		return err
	}
	bare, err := d.call(0, most, howLong)
	if err != nil {
		return err
	}
	probed, err := d.call(t.function, calls, howLong)
	if err != nil {
		return err
	}
	t.bare, t.probed = append(t.bare, bare), append(t.probed, probed)
	mean, ok, err := t.read()
	if ok {
		t.measured = append(t.measured, mean)
	}
	return err
}

// added is what probing adds to a call, inside what of that the intervals contain. Of
// all batches the quickest count: whatever else the machine does adds to a batch.
func (t *trial) added() float64  { return slices.Min(t.probed) - slices.Min(t.bare) }
func (t *trial) inside() float64 { return slices.Min(t.measured) - slices.Min(t.bare) }

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
	return (now.sum - was.sum) / (now.count - was.count), true, nil
}

// costs are what the trials say of each kind. An interval that begins and ends at the
// reference contains one cost of it; where within a hit the time is taken does not matter.
func costs(list []*trial, reference string) map[string]omis.Cost {
	all := make(map[string]omis.Cost)
	change := func(kind string, f func(*omis.Cost)) {
		c := all[kind]
		f(&c)
		all[kind] = c
	}
	for _, t := range list {
		if !t.timed() {
			change(t.begin, func(c *omis.Cost) { c.Count, c.Time = t.added(), t.added() })
		}
	}
	ref := all[reference]
	for _, t := range list {
		if t.timed() && t.begin == reference && t.end == reference {
			ref.Before = ref.Count / 2
			ref.After = t.inside() - ref.Before
		}
	}
	all[reference] = ref
	for _, t := range list {
		if t.timed() && t.begin == reference && t.end != reference {
			change(t.end, func(c *omis.Cost) { c.Before = t.inside() - ref.After })
		}
	}
	for _, t := range list {
		if t.timed() && t.begin != reference {
			change(t.begin, func(c *omis.Cost) { c.After = t.inside() - all[t.end].Before })
		}
		if t.timed() && t.begin == t.end {
			change(t.begin, func(c *omis.Cost) { c.Time = t.added() / 2 })
		}
	}
	return all
}
