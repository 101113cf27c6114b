package probes

import (
	"time"

	"mirador/mir"
	"mirador/mir/translate"
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

// suited returns the measuring element of a request over the defaults. It omits defaults that
// make no sense for the request: first the duration, then the interval, then the delivery of
// each measurement.
func suited(defaults *mir.Measuring, r *mir.InstrRequest) *mir.Measuring {
	if defaults == nil {
		return r.Measuring
	}
	d, full := *defaults, *r
	for _, omit := range []func(){
		func() {}, func() { d.Duration = nil }, func() { d.Interval = nil }, func() { d.Delivery = nil },
	} {
		omit()
		full.Measuring = overlay(&d, r.Measuring)
		if translate.SuitsTimes(&full) {
			return full.Measuring
		}
	}
	return r.Measuring
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
