package translate

import (
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
)

// A plan keeps records if every execution of the region is delivered, or if an event trace is
// requested (MIR 4). The records are in a trace of the monitor: one for each value that an action
// has measured, one where the region is entered and one where it is left.

// Marks of the records.
const (
	markEnter = 1 + iota // the region is entered; the value is the stack pointer
	markLeave            // the region is left; the value is the stack pointer
	markEnd              // the values of a measurement are complete
	markGroup            // so many values of a group follow: see taken.go
	markValue = 1 << 10  // plus the index of a metric: its value
	markView  = 1 << 16  // times the view of the metric, if it is not executing
	markBegin = 1 << 20  // plus the index of a metric without region: its event begins
)

// traceRoom is the number of records that each thread keeps until they are read.
const traceRoom = 1 << 13

// eachExecution reports whether the request delivers every execution of a region on its own, and no
// sums over executions.
func eachExecution(r *mir.InstrRequest) bool {
	m := r.Measuring
	return r.Region != nil && m != nil && m.Delivery != nil && *m.Delivery < 0 && !Scheduled(m) && len(m.Functions()) == 0
}

// Records has the methods of a plan that concern records.
type Records struct{ *Plan }

// recorded decides which records the plan keeps.
func (p Records) recorded(r *mir.InstrRequest) (errs Errors) {
	p.Traced = r.Events > 0
	p.Recorded = p.Traced || eachExecution(r)
	if !p.Traced || r.Region != nil {
		return nil
	}
	if len(r.Metrics) == 0 {
		return Errors{Errorf(CannotBeDone, place(r), "an event trace is of a region of interest (MIR 4): add a codeRegion, or a metric that counts or times events, such as SYSCALL_TIME")}
	}
	for i, m := range p.Metrics {
		if !m.onEvents() {
			errs = append(errs, m.untraced(r.Metrics[i].Pos))
		}
	}
	return errs
}

// untraced refuses an event trace of a metric that has no events, without a region: MIR 4 generates event
// traces "for the region of interest", and records at other instants would be measurements at an interval.
func (m Metric) untraced(pos mir.Position) *Error {
	region := ""
	if m.Region {
		region = "add a codeRegion, or "
	}
	return Errorf(CannotBeDone, pos, "MIR 4 generates event traces \"for the region of interest\", and %s has no events of its own: %sleave \"event\" out, and write an interval and delivery=\"-1\" for its value at each interval", m.Name, region)
}

// createTrace returns the action that creates the trace.
func (p Records) createTrace() []string {
	if !p.Recorded {
		return nil
	}
	return []string{fmt.Sprintf("pa_trace_create(%d)", traceRoom)}
}

// Read returns the request for at most so many records. ReadRecords reads the reply.
func (p Records) Read(h Handles, most int) string {
	return fmt.Sprintf(": pa_trace_read([%s],%d)", h.Trace, most)
}

// Forget returns the request that discards the records.
func (p Records) Forget(h Handles) string { return ": " + call("pa_trace_reset", h.Trace) }

// valueOf returns the metric whose value is recorded with a mark, and for which threads it is measured.
func valueOf(mark int) (metric int, of view, ok bool) {
	n := mark - markValue
	return n % markView, view(n / markView), n >= 0 && mark < markBegin
}

// measurer finds what an action measures, by the object that it changes.
type measurer map[omis.Token]measured

type measured struct {
	metric int
	view   view
}

func (p Records) measurer(h Handles) measurer {
	of := make(measurer)
	if !p.OnRegion() {
		p.assign(of, h, h.Events, executing)
		return of
	}
	n := len(p.Gains.metrics)
	for i, v := range p.Gains.views {
		p.assign(of, h, h.Gains[i*n:][:n], v)
	}
	return of
}

// assign adds the counter, the timers, and the objects of the other metrics in a view.
func (p Records) assign(of measurer, h Handles, objects []omis.Token, v view) {
	for i, m := range p.Metrics {
		object, in := omis.Token(""), v
		switch {
		case m.source == fromCounter:
			object, in = h.Counter, executing
		case m.source == fromTimer:
			object, in = h.Timer, executing
		case m.source == fromCPUTimer:
			object, in = h.CPUTimer, executing
		case len(objects) > 0:
			object, objects = objects[0], objects[1:]
		}
		if _, known := of[object]; !known && object != "" {
			of[object] = measured{i, in}
		}
	}
}

// pairs reports whether the records of entries and exits must be paired: for an event trace, or
// because some values of an execution are measured at its entry and others at its exit.
func (p Records) pairs() bool {
	return p.Traced || p.Gains.any() && p.Gains.ends == atBeginning && (p.Times() || p.TimesCPU())
}

// opens reports whether an action opens an interval.
func opens(action string) bool {
	return strings.HasPrefix(action, "pa_timer_start(") || strings.HasPrefix(action, "pa_timer_begin(")
}

// by returns what an action measures. ok is false for actions that measure nothing yet, such as
// the start of a timer.
func (of measurer) by(action string) (m measured, ok bool) {
	_, rest, _ := strings.Cut(action, "([")
	object, _, _ := strings.Cut(rest, "]")
	m, ok = of[omis.Token(object)]
	return m, ok && !opens(action)
}

// recording adds to the actions at a place those that record what the actions measure. The entry is
// recorded before the timers start, so that the timers do not measure the recording.
func (p Records) recording(h Handles, place Place, actions []string) []string {
	if h.Trace == "" {
		return actions
	}
	of := p.measurer(h)
	var before, after []string
	for _, a := range actions {
		if opens(a) {
			after = append(after, a)
			continue
		}
		before = append(before, a)
		if m, ok := of.by(a); ok {
			before = append(before, p.noteOf(m, h))
		}
	}
	switch {
	case p.pairs() && place.Exit:
		before = append(before, p.note("stack", h, markLeave))
	case p.pairs():
		before = append(before, p.note("stack", h, markEnter))
	case !p.alone() && (place.Exit == p.left() || p.takesTwice()):
		before = append(before, p.note("add", h, markEnd))
	}
	return append(before, after...)
}

// recordingEvent adds the actions that record an event of a metric without region.
func (p Records) recordingEvent(h Handles, action string) string {
	if h.Trace == "" || p.OnRegion() {
		return action
	}
	m, ok := p.measurer(h).by(action)
	if ok {
		return action + " " + p.note("last", h, markValue+m.metric)
	}
	object, _, _ := strings.Cut(strings.TrimPrefix(action, "pa_timer_start(["), "]")
	return p.note("add", h, markBegin+p.measurer(h)[omis.Token(object)].metric) + " " + action
}

// note returns an action that appends a record.
func (p Records) note(service string, h Handles, mark int) string {
	return fmt.Sprintf("pa_trace_%s([%s],%d)", service, h.Trace, mark)
}

// noteOf returns the action that records what the action before measures.
func (p Records) noteOf(m measured, h Handles) string {
	mark := markValue + int(m.view)*markView + m.metric
	if m.view != executing {
		return fmt.Sprintf("pa_trace_group([%s],%d,%d)", h.Trace, markGroup, mark)
	}
	return p.note("last", h, mark)
}

// takesTwice reports whether a level is measured at both ends of an execution, which makes two measurements.
func (p Records) takesTwice() bool {
	return p.Gains.ends == bothEnds && slices.ContainsFunc(p.Metrics, p.Gains.takesLevel)
}

// alone reports whether the record of a value is all that an execution needs: one value is measured,
// for one thread.
func (p Records) alone() bool {
	names := make(map[string]bool)
	for _, m := range p.Metrics {
		names[m.Name] = true
	}
	return len(names) == 1 && !p.Gains.others() && !p.pairs()
}

// left reports whether the plan observes where the region is left.
func (p Records) left() bool {
	return slices.ContainsFunc(p.Places, func(p Place) bool { return p.Exit })
}

// Record is a record of the monitor's trace.
type Record struct {
	Process, Thread omis.Token
	Time            int64 // nanoseconds, by the clock of the monitor
	Mark            int
	Value           int64
}

// ReadRecords reads the reply to Records.Read. lost is the number of records that were overwritten
// before they were read.
func ReadRecords(reply omis.Reply) (records []Record, lost int64, err error) {
	if err := replyError(reply); err != nil {
		return nil, 0, err
	}
	for r, err := range results(reply, 1) {
		if err != nil {
			return nil, 0, err
		}
		if len(r.Values) != 3 || len(r.Values[2].List)%5 != 0 {
			return nil, 0, unexpected("pa_trace_read", r)
		}
		n, _ := r.Values[0].Int64()
		lost += n
		records = slices.Grow(records, len(r.Values[2].List)/5)
		for l := r.Values[2].List; len(l) > 0; l = l[5:] {
			mark, _ := l[3].Int64()
			value, _ := l[4].Int64()
			records = append(records, Record{l[0].Token(), l[1].Token(), int64(l[2].Nanoseconds()), int(mark), value})
		}
	}
	return records, lost, nil
}

// Counts reads the reply to Plan.Read as records of the counts so far, one for each thread.
func (p Records) Counts(reply omis.Reply, h Handles) ([]Record, error) {
	rd, err := p.reading(reply, h)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.Metrics, func(m Metric) bool { return m.source == fromCounter })
	records := make([]Record, len(rd.counts))
	for j, r := range rd.counts {
		records[j] = Record{r.process, r.thread, 0, markValue + i, int64(r.stats.Last)}
	}
	return records, nil
}
