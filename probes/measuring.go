package probes

import (
	"time"

	"mirador/mir"
)

// overlay is a measuring element over earlier settings: what it leaves out
// remains as it was (MIR 4, MIR 5).
func overlay(under, over *mir.Measuring) *mir.Measuring {
	if under == nil || over == nil {
		if over == nil {
			return under
		}
		return over
	}
	m := *under
	m.Pos = over.Pos
	if over.Delivery != nil {
		m.Delivery = over.Delivery
	}
	if over.Destination != nil {
		m.Destination = over.Destination
	}
	if over.Interval != nil {
		m.Interval = over.Interval
	}
	if over.Duration != nil {
		m.Duration = over.Duration
	}
	if len(over.Aggregates) > 0 {
		m.Aggregates = over.Aggregates
	}
	return &m
}

// suited is the measuring element of a request over the defaults. Defaults that do not suit
// the request are not imposed on it: on a region nothing that goes by the clock, and without
// an interval no delivery of each measurement.
func suited(defaults *mir.Measuring, r *mir.InstrRequest) *mir.Measuring {
	if defaults == nil {
		return r.Measuring
	}
	d := *defaults
	if r.Region != nil {
		d.Interval = nil
	}
	if d.Delivery != nil && *d.Delivery < 0 && (r.Region != nil || interval(overlay(&d, r.Measuring)) == 0) {
		d.Delivery = nil
	}
	return overlay(&d, r.Measuring)
}

// interval is how often to measure, 0 where that is not by the clock.
func interval(m *mir.Measuring) time.Duration {
	if m == nil || m.Interval == nil {
		return 0
	}
	return time.Duration(*m.Interval) * time.Millisecond
}

// pace is how often to deliver: 0 is never, -1 after each measurement.
func pace(m *mir.Measuring) time.Duration {
	switch {
	case m == nil || m.Delivery == nil:
		return 0
	case *m.Delivery < 0:
		return -1
	}
	return time.Duration(*m.Delivery) * time.Millisecond
}
