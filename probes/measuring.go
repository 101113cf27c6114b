package probes

import (
	"time"

	"mirador/mir"
)

// overlay returns earlier settings with the attributes of a measuring element; those that it
// omits remain (MIR 4, MIR 5).
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

// suited returns the measuring element of a request over the defaults. It ignores defaults that
// would make the request invalid: an interval for a region, and delivery of each measurement for
// a region or without an interval.
func suited(defaults *mir.Measuring, r *mir.InstrRequest) *mir.Measuring {
	if defaults == nil {
		return r.Measuring
	}
	d := *defaults
	if r.Region != nil {
		d.Interval, d.Duration = nil, nil
	}
	if d.Delivery != nil && *d.Delivery < 0 && (r.Region != nil || isUnscheduled(overlay(&d, r.Measuring))) {
		d.Delivery = nil
	}
	return overlay(&d, r.Measuring)
}

// interval returns the time between measurements, 0 if the probe does not measure at fixed
// times.
func interval(m *mir.Measuring) time.Duration {
	if m == nil || m.Interval == nil {
		return 0
	}
	return time.Duration(*m.Interval) * time.Millisecond
}

// duration returns the length of each measurement, 0 for measurements at an instant.
func duration(m *mir.Measuring) time.Duration {
	if m == nil || m.Duration == nil {
		return 0
	}
	return time.Duration(*m.Duration) * time.Millisecond
}

// isUnscheduled reports whether the probe measures only for VALUE.
func isUnscheduled(m *mir.Measuring) bool { return interval(m) == 0 && duration(m) == 0 }

// pace returns the time between deliveries: 0 for none, -1 for a delivery after each
// measurement.
func pace(m *mir.Measuring) time.Duration {
	switch {
	case m == nil || m.Delivery == nil:
		return 0
	case *m.Delivery < 0:
		return -1
	}
	return time.Duration(*m.Delivery) * time.Millisecond
}
