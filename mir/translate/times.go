package translate

import (
	"mirador/mir"
)

// A measuring element says when to measure (MIR 4): when the region is executed, at an
// interval, or from one instant to another. Without any of these, a measurement happens when a
// VALUE or a delivery asks for it.

// CheckMeasuring checks the times of a request, or of the defaults for later requests. Each
// error says what to do instead.
func CheckMeasuring(m *mir.Measuring) Errors {
	if m == nil {
		return nil
	}
	var errs Errors
	if set(m.Duration) && set(m.Interval) && *m.Duration > *m.Interval {
		errs = append(errs, Errorf(CannotBeDone, m.Pos, "duration %d: it is longer than the interval of %d; the next measurement would begin before this one ends", *m.Duration, *m.Interval))
	}
	for _, ms := range []*int64{m.Interval, m.Delivery, m.Duration} {
		if ms != nil && *ms > longest {
			errs = append(errs, Errorf(CannotBeDone, m.Pos, "%d milliseconds are more than a year", *ms))
		}
	}
	return errs
}

// longest is a year in milliseconds.
const longest = 365 * 24 * 3600 * 1000

func set(ms *int64) bool { return ms != nil && *ms != 0 }

// Scheduled reports whether measurements happen at fixed times.
func Scheduled(m *mir.Measuring) bool { return m != nil && (set(m.Interval) || set(m.Duration)) }

// SuitsTimes reports whether the metrics of a request can be measured at the times that its
// measuring element gives. Errors for other reasons do not matter.
func SuitsTimes(r *mir.InstrRequest) bool {
	p := &Plan{}
	for _, asked := range r.Metrics {
		if m, ok := metric(asked.Name, r.Region != nil); ok {
			p.Metrics = append(p.Metrics, m)
		}
	}
	p.Gains = gainsOf(r, p.Metrics)
	return len(p.Metrics) < len(r.Metrics) || len(p.checkTimes(r)) == 0
}

// checkTimes checks the times of a request for its metrics.
func (p *Plan) checkTimes(r *mir.InstrRequest) Errors {
	errs := CheckMeasuring(r.Measuring)
	if wrong := p.checkEachTime(r); wrong != nil {
		errs = append(errs, wrong)
	}
	return errs
}

// checkEachTime refuses to deliver every measurement if measurements happen only for a VALUE
// request. Defaults may ask for it: later requests may have an interval.
func (p *Plan) checkEachTime(r *mir.InstrRequest) *Error {
	m := r.Measuring
	switch {
	case m == nil || m.Delivery == nil || *m.Delivery >= 0 || Scheduled(m) || r.Region != nil || r.Events > 0:
		return nil
	}
	return Errorf(CannotBeDone, m.Pos, "delivery -1: without an interval nothing is measured until a VALUE asks for it; add an interval or a duration, or give a delivery in milliseconds")
}

// AtInstant returns the values of a measurement at an instant: the last value of each entity.
// total takes the sum of all executions of a region instead. The difference of two such sums
// is what the executions between two instants took.
func (p *Plan) AtInstant(vs []Value, total bool) []Value {
	for i := range vs {
		s := &vs[i].Stats
		whole := wholeOf(s)
		switch v, ok := s.last(); {
		case !ok:
			*s = Stats{}
		case total && p.Gains.adds(p.Metrics[vs[i].Metric]):
			*s = single(s.Sum.Lo)
		default:
			*s = single(v)
		}
		s.Whole = whole
	}
	return vs
}
