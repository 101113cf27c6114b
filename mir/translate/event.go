package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mirador/omis"
)

// Some metrics measure events that happen anywhere in a program: system calls, waiting. Each
// has its own counter or timer, which events add to, start or stop. What the processor and the
// kernel count by themselves is measured by a meter, which has no events for the monitor.

// event is an event service of OMIS with its parameters besides the threads.
type event struct {
	service string
	call    string // the name of a system call, "" for all; only for services with such a parameter
	place   Place  // only for thread_reached_addr
	amount  string // the parameter of the event that Metric.amount adds; "": the first
}

// on formats the event for a conditional request.
func (e event) on(threads []omis.Token) string {
	if e.service == reached {
		return fmt.Sprintf("%s(%s,%#x)", e.service, list(threads), e.place.Addr)
	}
	if strings.HasSuffix(e.service, "_call") {
		return fmt.Sprintf("%s(%s,%q)", e.service, list(threads), e.call)
	}
	return fmt.Sprintf("%s(%s)", e.service, list(threads))
}

// systemCalls returns the events that begin or end some system calls.
func systemCalls(service string, names ...string) []event {
	events := make([]event, len(names))
	for i, name := range names {
		events[i] = event{service: service, call: name}
	}
	return events
}

const (
	started = "thread_has_started_sys_call"
	ended   = "thread_has_ended_sys_call"
	reached = "thread_reached_addr"
)

// of returns the metric for the system calls that a parameter names; ok is false if it names none.
func (m Metric) of(parameter string) (_ Metric, ok bool) {
	names := callsOf(parameter)
	m.Name += ":" + parameter
	m.begin = systemCalls(m.begin[0].service, names...)
	if m.end != nil {
		m.end = systemCalls(ended, names...)
	}
	return m, len(names) > 0
}

// onEvents reports whether the metric is measured at events.
func (m Metric) onEvents() bool { return m.source == fromEvents || m.source == betweenEvents }

// hasObject reports whether the metric's values are in an object of its own in the monitor.
func (m Metric) hasObject() bool { return m.onEvents() || m.source == fromMeter }

// object returns the class of the object that holds the metric's values.
func (m Metric) object() string {
	switch m.source {
	case betweenEvents:
		return "pa_timer"
	case fromMeter:
		return "pa_meter"
	}
	return "pa_counter"
}

// create returns the action that creates the object for the metric's values. spread says that a timer keeps a
// histogram of its intervals.
func (m Metric) create(spread bool) string {
	if spread && m.source == betweenEvents {
		return createTimer(m.clock, 0, true)
	}
	if m.source == fromMeter {
		return fmt.Sprintf("pa_meter_create(%q)", m.meter)
	}
	if m.clock != "" {
		return fmt.Sprintf("%s_create2(%q)", m.object(), m.clock)
	}
	return m.object() + "_create()"
}

// OnEvents reports whether the plan measures something that happens independently of places in the
// code, while the probe is active.
func (p *Plan) OnEvents() bool { return slices.ContainsFunc(p.Metrics, Metric.hasObject) }

// eventMetrics returns the metrics that have an object of their own, in the order of
// Handles.Events.
func (p *Plan) eventMetrics() []Metric {
	var ms []Metric
	for _, m := range p.Metrics {
		if m.hasObject() {
			ms = append(ms, m)
		}
	}
	return ms
}

// Objects returns the number of counters and timers that the plan needs for events.
func (p *Plan) Objects() int { return len(p.eventMetrics()) }

// conditionalEvents returns the conditional requests for events.
func (p *Plan) conditionalEvents(h Handles) []string {
	var requests []string
	add := func(e event, action string) {
		if threads := p.concerned(e); len(threads) > 0 {
			action = Records{p}.recordingEvent(h, action)
			requests = append(requests, e.on(threads)+" : "+action)
		}
	}
	for i, m := range p.eventMetrics() {
		for _, e := range m.begin {
			add(e, m.action(h.Events[i], e))
		}
		for _, e := range m.end {
			add(e, call("pa_timer_stop", h.Events[i]))
		}
	}
	return requests
}

// concerned returns the token list of an event.
func (p *Plan) concerned(e event) (threads []omis.Token) {
	if e.service == reached {
		return p.watched(e.place)
	}
	for _, s := range p.scopes {
		threads = append(threads, s.tokens()...)
	}
	return threads
}

// action returns the action at an event in begin.
func (m Metric) action(object omis.Token, e event) string {
	switch {
	case m.source == betweenEvents:
		return call("pa_timer_start", object)
	case m.amount:
		return fmt.Sprintf("pa_counter_add_amount([%s],$%s)", object, cmp.Or(e.amount, "par1"))
	}
	return fmt.Sprintf("pa_counter_add([%s],1)", object)
}

// sumRows reads the total time of all intervals from pa_timer_read.
func sumRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_read", 9, func(vs []omis.Value) Stats { return single(vs[2].Nanoseconds()) })
}

// IsMeter reports whether an object counts by descriptors of the monitor, so that it ends with it.
func IsMeter(object omis.Token) bool { return object.Class() == "pa_m" }

// meters returns the meters among the objects of events.
func (p *Plan) meters(h Handles) (list []omis.Token) {
	for i, m := range p.eventMetrics() {
		if i < len(h.Events) && m.source == fromMeter {
			list = append(list, h.Events[i])
		}
	}
	return list
}

// meterRows reads pa_meter_read. A thread whose event the processor had no counter for has no value.
func meterRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_meter_read", 5, func(vs []omis.Value) Stats {
		n, _ := vs[0].Int64()
		if n < 0 {
			return Stats{}
		}
		return single(uint64(n))
	})
}
