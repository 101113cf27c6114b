package translate

// Samples and percentiles describe executions of a region. If values are measured at fixed times, they describe, at an
// instant, all executions until then, as the answer to VALUE does; over a duration, those that ended in it. With
// aggregates they describe the executions of all measurements.

// Whole has the executions behind values that are measured at fixed times.
type Whole struct {
	Last Stats  `json:"last"`          // of the last measurement
	Sum  *Stats `json:"sum,omitempty"` // of all durations; nil: the last measurement includes the earlier ones
}

// wholeOf returns the executions that a value describes, nil if the request asks for no such description.
func wholeOf(s *Stats) *Whole {
	if len(s.Spread) == 0 && s.Sampled == (Sampled{}) && s.Paired == (Paired{}) {
		return nil
	}
	return &Whole{Last: *s}
}

// executions returns the executions that the samples and percentiles beside a value describe.
func (s *Stats) executions(aggregate bool) *Stats {
	switch {
	case s.Whole == nil:
		return s
	case aggregate && s.Whole.Sum != nil:
		return s.Whole.Sum
	}
	return &s.Whole.Last
}

// plus returns the executions of two entities.
func (w *Whole) plus(o *Whole) *Whole {
	switch {
	case w == nil:
		return o
	case o == nil:
		return w
	}
	both := &Whole{Last: w.Last.with(o.Last)}
	if w.Sum != nil && o.Sum != nil {
		sum := w.Sum.with(*o.Sum)
		both.Sum = &sum
	}
	return both
}

// with returns the values of s, and of o after them.
func (s Stats) with(o Stats) Stats {
	s.Merge(o)
	return s
}

// then returns the executions of an entity after a later measurement.
func (w *Whole) then(later *Whole) *Whole {
	if w == nil || later == nil || w.Sum == nil || later.Sum == nil {
		if later == nil {
			return w
		}
		return later
	}
	sum := w.Sum.with(*later.Sum)
	return &Whole{Last: later.Last, Sum: &sum}
}

// since returns the executions that ended after an earlier measurement; all of them if it is nil.
func (w *Whole) since(earlier *Whole) *Whole {
	if w == nil {
		return nil
	}
	last := w.Last
	if earlier != nil {
		last = last.since(&earlier.Last)
	}
	sum := last
	return &Whole{Last: last, Sum: &sum}
}

// since returns the statistics of the values after earlier ones, except for the least and the greatest value.
func (s Stats) since(earlier *Stats) Stats {
	s.N -= earlier.N
	s.Sum, s.Squares = s.Sum.Sub(earlier.Sum), s.Squares.Sub(earlier.Squares)
	s.Spread = s.Spread.Since(earlier.Spread)
	s.Paired = Paired{s.Paired.Begun - earlier.Paired.Begun, s.Paired.Ended - earlier.Paired.Ended}
	if s.Sampled.Begun > 0 {
		s.Sampled = s.sampledSince(earlier)
	}
	return s
}

// sampledSince returns the sample of the executions after earlier ones. s has the sums of these executions.
func (s *Stats) sampledSince(earlier *Stats) Sampled {
	all, before := s.Sampled, earlier.Sampled
	all.Begun, all.Timed, all.Unended = all.Begun-before.Begun, all.Timed-before.Timed, all.Unended-before.Unended
	all.Sum, all.Covered = 0, 0
	if chosen := all.Timed + all.Unended; all.Timed > 0 {
		all.Covered = all.Begun
		all.Sum = s.Sum.Float() * max(float64(all.Begun)/float64(chosen), 1)
	}
	return all
}

// estimates reports whether the time of all executions in a duration is estimated from some of them.
func (p *Plan) estimates(m Metric) bool { return p.OneIn > 1 && p.Gains.adds(m) }

// estimate returns the estimated sum of the last measurement, no value if no execution was timed.
func (w *Whole) estimate() Stats {
	if w.Last.Sampled.Timed <= 0 {
		return Stats{}
	}
	return single(uint64(w.Last.Sampled.estimate() + 0.5))
}
