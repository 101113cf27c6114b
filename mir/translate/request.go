package translate

import (
	"fmt"
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/node"
)

// Create returns the request that creates the plan's counters and timers, "" if it needs none.
// Bind reads the reply.
func (p *Plan) Create() string {
	var actions []string
	if hasCounter(p) {
		actions = append(actions, "pa_counter_create()")
	}
	if p.Gains.crosses {
		actions = append(actions, "pa_counter_create()")
	}
	if p.uses(fromTimer) {
		clock := ""
		if p.Fast {
			clock = "fast"
		}
		actions = append(actions, createTimer(clock, p.OneIn, len(p.Percent) > 0))
	}
	if p.TimesCPU() {
		actions = append(actions, createTimer("cpu", p.OneIn, len(p.Percent) > 0))
	}
	for _, m := range p.eventMetrics() {
		actions = append(actions, m.create(spreads(p, m)))
	}
	return unconditional(append(actions, Records{p}.createTrace()...))
}

// Bind reads the tokens from the reply to Create.
func (p *Plan) Bind(reply omis.Reply) (h Handles, err error) {
	next := 1
	if hasCounter(p) {
		if h.Counter, err = Token(reply, next); err != nil {
			return h, err
		}
		next++
	}
	if p.Gains.crosses {
		if h.Ends, err = Token(reply, next); err != nil {
			return h, err
		}
		next++
	}
	if p.uses(fromTimer) {
		if h.Timer, err = Token(reply, next); err != nil {
			return h, err
		}
		next++
	}
	if p.TimesCPU() {
		if h.CPUTimer, err = Token(reply, next); err != nil {
			return h, err
		}
		next++
	}
	for range p.Objects() {
		t, err := Token(reply, next)
		if err != nil {
			return h, err
		}
		h.Events = append(h.Events, t)
		next++
	}
	if p.Recorded {
		h.Trace, err = Token(reply, next)
	}
	return h, err
}

// Conditional returns the conditional requests of the plan: one for each place, in the order
// of Places, followed by those for events. The caller stores their tokens in Handles.Requests.
func (p *Plan) Conditional(h Handles) []string {
	requests := make([]string, len(p.Places))
	for i, place := range p.Places {
		requests[i] = fmt.Sprintf("%s : %s", place.event(list(p.watched(place))), strings.Join(Records{p}.recording(h, place, p.actions(h, place)), " "))
	}
	return append(requests, p.conditionalEvents(h)...)
}

// event returns the event of the place.
func (p *Place) event(threads string) string {
	if p.When > 0 {
		return fmt.Sprintf("pa_thread_reached_addr_if(%s,%#x,%d)", threads, p.Addr, p.When-1)
	}
	return fmt.Sprintf("thread_reached_addr(%s,%#x)", threads, p.Addr)
}

// counts reports whether executions are counted at a place. They are counted where the region
// is entered, or, if only its end is measured, where it is left.
func (p *Plan) counts(place Place) bool { return !place.Exit || p.Places[0].Exit }

// actions returns the actions at a place. The timers of WC_TIME and CPU_TIME start last and stop
// first, so that they do not measure the other actions.
func (p *Plan) actions(h Handles, place Place) []string {
	var as []string
	timers := slices.DeleteFunc([]omis.Token{h.CPUTimer, h.Timer}, func(t omis.Token) bool { return t == "" })
	if place.Exit {
		as = append(p.Gains.stops(timers), p.Gains.ended(h)...)
	}
	if place.Exit && h.Ends != "" {
		as = append(as, fmt.Sprintf("pa_counter_add([%s],1)", h.Ends))
	}
	if p.counts(place) && h.Counter != "" {
		as = append(as, fmt.Sprintf("pa_counter_add([%s],1)", h.Counter))
	}
	if !place.Exit {
		as = slices.Concat(as, p.Gains.begun(h), p.Gains.starts(timers))
	}
	return as
}

// watched returns the token list of a place's event.
func (p *Plan) watched(place Place) []omis.Token {
	if p.Gains.others() {
		return place.Processes
	}
	var ts []omis.Token
	for _, process := range place.Processes {
		for _, s := range p.scopes {
			if s.process == process {
				ts = append(ts, s.tokens()...)
			}
		}
	}
	return ts
}

// Enable returns the request that starts measuring; Disable returns the one that suspends it.
// Both are "" if the plan watches nothing. The order in which places are enabled does not
// matter: stopping a timer that was not started has no effect, and the next start at the same
// place on the stack replaces one that was not stopped.
func (p *Plan) Enable(h Handles) string {
	enable := Enable(h.Requests)
	meters := p.meters(h)
	if len(meters) == 0 || len(p.scopes) == 0 {
		return enable
	}
	start := fmt.Sprintf("pa_meter_start(%s,%s)", list(meters), list(p.concerned(event{})))
	if enable == "" {
		return unconditional([]string{start})
	}
	return enable + " " + start
}

// Enable returns the request that enables conditional requests, of one plan or several.
func Enable(requests []omis.Token) string {
	if len(requests) == 0 {
		return ""
	}
	return ": csr_enable(" + list(requests) + ")"
}

// Disable returns the request that disables conditional requests.
func Disable(requests []omis.Token) string {
	if len(requests) == 0 {
		return ""
	}
	return ": csr_disable(" + list(requests) + ")"
}

// OfProcesses returns a request that calls a service for processes.
func OfProcesses(service string, processes []omis.Token) string {
	return ": " + service + "(" + list(processes) + ")"
}

// Delete returns the request that deletes conditional requests.
func Delete(requests []omis.Token) string {
	if len(requests) == 0 {
		return ""
	}
	return ": csr_delete(" + list(requests) + ")"
}

// Disable returns the request that reverts Enable.
func (p *Plan) Disable(h Handles) string {
	disable := Disable(h.Requests)
	meters := p.meters(h)
	if len(meters) == 0 {
		return disable
	}
	stop := "pa_meter_stop(" + list(meters) + ")"
	if disable == "" {
		return unconditional([]string{stop})
	}
	return disable + " " + stop
}

// Reset returns the request that resets all values, "" if the monitor holds none. A clock goes on
// if only differences of its values are measured.
func (p *Plan) Reset(h Handles) string {
	if p.Gains.ends == bothEnds {
		h.Events = nil
	}
	return unconditional(p.each(h, "reset"))
}

// Remove returns the request that deletes everything that was created for the plan. It deletes
// conditional requests before the objects that their actions use.
func (p *Plan) Remove(h Handles) string {
	var as []string
	if len(h.Requests) > 0 {
		as = append(as, "csr_delete("+list(h.Requests)+")")
		if h.Counter != "" || h.Timer != "" || h.CPUTimer != "" || h.Trace != "" || len(h.Events)+len(h.Gains) > 0 {
			as[0] += " ;"
		}
	}
	return unconditional(append(as, p.each(h, "delete")...))
}

// Read returns the request for the values. Values reads the reply.
func (p *Plan) Read(h Handles) string {
	as := p.each(h, "read")
	if fields := p.procFields(); fields != 0 {
		as = append(as, fmt.Sprintf("proc_get_info(%s,%#x)", list(p.read()), fields))
	}
	if fields := p.threadFields(); fields != 0 {
		as = append(as, fmt.Sprintf("thread_get_info(%s,%#x)", list(p.read()), fields))
	}
	if p.uses(fromNode) {
		as = append(as, fmt.Sprintf("node_get_info([],%#x)", groupOfNode))
	}
	return unconditional(as)
}

// procFields returns the information to request about processes, 0 if none.
func (p *Plan) procFields() (f node.ProcFields) {
	if p.wants(processLevel) {
		for _, m := range p.Metrics {
			f |= m.info.process
		}
	}
	return f
}

// threadFields returns the information to request about threads, 0 if none.
func (p *Plan) threadFields() node.ThreadFields {
	var f node.ThreadFields
	if p.uses(fromThreads) || p.wants(everyThread) {
		f |= node.ThreadProcess
	}
	if p.uses(fromInfo) && p.wants(threadLevel) {
		f |= node.ThreadProcess
		for _, m := range p.Metrics {
			f |= m.info.thread
		}
	}
	return f
}

// read returns the token list for information about the measured objects. It is empty, which
// means the whole application, if no process or thread is named.
func (p *Plan) read() []omis.Token {
	var ts []omis.Token
	for _, e := range p.entities {
		if !named(e.process) && !named(e.thread) {
			return nil
		}
	}
	for _, s := range p.scopes {
		ts = append(ts, s.tokens()...)
	}
	return ts
}

func processLevel(e *entity) bool { return e.thread == "" }
func threadLevel(e *entity) bool  { return e.thread != "" }
func everyThread(e *entity) bool  { return e.thread == every }

func (p *Plan) wants(what func(*entity) bool) bool {
	for i := range p.entities {
		if what(&p.entities[i]) {
			return true
		}
	}
	return false
}

// each calls a service for the counter, the timers and the objects of events.
func (p *Plan) each(h Handles, verb string) []string {
	var as []string
	if h.Counter != "" {
		as = append(as, call("pa_counter_"+verb, h.Counter))
	}
	if h.Ends != "" {
		as = append(as, call("pa_counter_"+verb, h.Ends))
	}
	for _, t := range []omis.Token{h.Timer, h.CPUTimer} {
		switch {
		case t == "":
		case verb == "read":
			as = append(as, p.readTimer(t, p.exact())...)
		default:
			as = append(as, call("pa_timer_"+verb, t))
		}
	}
	for i, m := range p.eventMetrics() {
		if i < len(h.Events) && (verb != "read" || !p.Gains.has(m)) {
			as = append(as, call(m.object()+"_"+verb, h.Events[i]))
			if verb == "read" && spreads(p, m) {
				as = append(as, readHistogram(h.Events[i]))
			}
		}
	}
	for _, t := range h.Gains {
		if verb == "read" {
			as = append(as, p.readTimer(t, true)...)
		} else {
			as = append(as, call("pa_timer_"+verb, t))
		}
	}
	if h.Trace != "" && verb != "read" { // Records.Read reads it
		as = append(as, call("pa_trace_"+verb, h.Trace))
	}
	return as
}

func call(service string, t omis.Token) string { return service + "([" + string(t) + "])" }

func list(ts []omis.Token) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, t := range ts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(t))
	}
	b.WriteByte(']')
	return b.String()
}

func unconditional(actions []string) string {
	if len(actions) == 0 {
		return ""
	}
	return ": " + strings.Join(actions, " ")
}
