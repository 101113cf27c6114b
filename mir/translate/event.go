package translate

import (
	"fmt"
	"strings"

	"mirador/omis"
)

// Some metrics are about events that happen anywhere in a program: system calls, waiting.
// Each is a counter or a timer of its own, which events add to, start or stop.

// event is an event service of OMIS, and what it is about besides threads.
type event struct {
	service string
	call    string // the name of a system call, "" for all; only where the service has such a parameter
}

// on is the event as it stands in a conditional request.
func (e event) on(threads []omis.Token) string {
	if strings.HasSuffix(e.service, "_call") {
		return fmt.Sprintf("%s(%s,%q)", e.service, list(threads), e.call)
	}
	return fmt.Sprintf("%s(%s)", e.service, list(threads))
}

// systemCalls are the events that begin or end some system calls.
func systemCalls(service string, names ...string) []event {
	events := make([]event, len(names))
	for i, name := range names {
		events[i] = event{service, name}
	}
	return events
}

const (
	started = "thread_has_started_sys_call"
	ended   = "thread_has_ended_sys_call"
)

// of is the metric for one system call.
func (m Metric) of(name string) Metric {
	m.Name += ":" + name
	m.begin = systemCalls(started, name)
	if m.end != nil {
		m.end = systemCalls(ended, name)
	}
	return m
}

// isCallName tells whether a system call may have a name. Whether one has is for the node
// to say.
func isCallName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// onEvents tells whether the metric is measured at events.
func (m Metric) onEvents() bool { return m.source == fromEvents || m.source == betweenEvents }

// object is the class of what the metric is kept in.
func (m Metric) object() string {
	if m.source == betweenEvents {
		return "pa_timer"
	}
	return "pa_counter"
}

// create makes what the metric is kept in.
func (m Metric) create() string {
	if m.clock != "" {
		return fmt.Sprintf("%s_create2(%q)", m.object(), m.clock)
	}
	return m.object() + "_create()"
}

// OnEvents tells whether the plan needs events to be watched that happen anywhere.
func (p *Plan) OnEvents() bool { return p.uses(fromEvents) || p.uses(betweenEvents) }

// eventMetrics are the metrics that are measured at events, in the order of Handles.Events.
func (p *Plan) eventMetrics() []Metric {
	var ms []Metric
	for _, m := range p.Metrics {
		if m.onEvents() {
			ms = append(ms, m)
		}
	}
	return ms
}

// Imagined are Handles.Events as a monitor that has created nothing else would give them
// out.
func (p *Plan) Imagined() []omis.Token {
	var tokens []omis.Token
	last := make(map[string]int)
	for _, m := range p.eventMetrics() {
		class := m.object()[:len("pa_x")] // pa_c, pa_t
		last[class]++
		tokens = append(tokens, omis.Token(fmt.Sprint(class, "_", last[class])))
	}
	return tokens
}

// Objects is how many counters and timers the plan needs for events.
func (p *Plan) Objects() int { return len(p.eventMetrics()) }

// conditionalEvents are the conditional requests for events.
func (p *Plan) conditionalEvents(h Handles) []string {
	var threads []omis.Token
	for _, s := range p.scopes {
		threads = append(threads, s.tokens()...)
	}
	if len(threads) == 0 {
		return nil
	}
	var requests []string
	for i, m := range p.eventMetrics() {
		action := fmt.Sprintf("pa_counter_add([%s],1)", h.Events[i])
		if m.source == betweenEvents {
			action = call("pa_timer_start", h.Events[i])
		}
		for _, e := range m.begin {
			requests = append(requests, e.on(threads)+" : "+action)
		}
		for _, e := range m.end {
			requests = append(requests, e.on(threads)+" : "+call("pa_timer_stop", h.Events[i]))
		}
	}
	return requests
}

// sumRows reads pa_timer_read for the time that all intervals took together.
func sumRows(reply omis.Reply, i int) ([]row, error) {
	return flat(reply, i, "pa_timer_read", 9, func(vs []omis.Value) Stats { return single(ms(vs[2])) })
}
