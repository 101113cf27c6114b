package translate

import (
	"maps"
	"slices"

	"mirador/mir"
	"mirador/omis"
)

// Execution is what the records say about one execution of the region, or about one end of it
// in an event trace.
type Execution struct {
	Process, Thread omis.Token
	Goroutine       uint64 // address of its descriptor, in functions of Go; else 0
	Time            int64  // nanoseconds, by the clock of the monitor
	What            What
	Metric          int            // of an event without region, whose metric it is; else -1
	Measured        map[int]uint64 // values of the thread, by the index of their metrics
	Group           []OfThread     // values of a group of threads, which were measured when the thread executed the region

	others map[omis.Token]uint64 // count of the other threads, by process
}

// What tells what an Execution is.
type What uint8

const (
	Executed  What = iota + 1 // an execution that measured the values
	Entered                   // the region was entered, or an event began
	Left                      // the region was left, or an event ended, that was entered before unless only ends are measured
	Abandoned                 // an exception or longjmp has left the region since
	Cut                       // records are lost: whether the region was left is not known
	Unmatched                 // the region was left, and the record of its entry does not exist
)

// Recorder makes executions of records. It pairs entries with exits by their stack pointers, as
// timers do, and guesses nothing where records are lost. It is for one goroutine.
type Recorder struct {
	plan    *Plan
	solo    bool // one value is measured where an execution ends: each one is an execution
	threads map[omis.Token]*recordedThread
	// goroutines has those that have begun executions and not ended them.
	goroutines map[goroutine]*unfinished
	group      incoming
	found      []Execution
	totals     map[omis.Token]uint64 // of COUNT, by process; nil if only threads are measured
}

type recordedThread struct {
	process, thread omis.Token
	counts          map[int]recordedCount
	pending         taken // values of an execution whose other values follow
	own             unfinished
	goroutine       uint64 // to which the next record of a place on a stack belongs; 0: none
	last            int64  // time of the last record
}

// recordedCount is a count of a thread. The count begins again when the request moves to
// another placement; base is what was counted before.
type recordedCount struct{ base, last uint64 }

// Recorder returns a recorder for the records.
func (p Records) Recorder() *Recorder {
	r := &Recorder{plan: p.Plan, solo: p.alone(), threads: make(map[omis.Token]*recordedThread), goroutines: make(map[goroutine]*unfinished)}
	if p.Plan.Counts() && p.wants(processLevel) {
		r.totals = make(map[omis.Token]uint64)
	}
	return r
}

// Lost begins the records after a loss. It returns the ends of the executions that are open.
func (r *Recorder) Lost() []Execution {
	r.found, r.group = nil, incoming{}
	for _, t := range r.threads {
		t.pending.clear()
		t.goroutine = 0
		r.cut(&t.own, len(t.own.list), Cut, t.last)
	}
	for _, u := range r.goroutines {
		r.cut(u, len(u.list), Cut, u.last)
	}
	clear(r.goroutines)
	return r.found
}

// Seed sets the counts with which the recorder begins. It records no executions for them.
func (r *Recorder) Seed(counts []Record) {
	for i := range counts {
		r.count(r.of(&counts[i]), &counts[i])
	}
}

// Take returns the executions that records complete.
func (r *Recorder) Take(records []Record) []Execution {
	r.found = nil
	for i := range records {
		rec := &records[i]
		metric, of, isValue := valueOf(rec.Mark)
		if isValue && of != executing {
			r.group.value(metric, of, rec)
			continue
		}
		t := r.of(rec)
		t.last = rec.Time
		switch {
		case rec.Mark == -markEnter || rec.Mark == -markLeave:
			t.goroutine = uint64(rec.Value)
		case rec.Mark == markEnter || rec.Mark == markLeave:
			r.stack(t, rec)
		case rec.Mark == markEnd && t.pending.any(): // else it began before the probe
			r.emit(t, rec.Time, Executed, -1)
		case rec.Mark == markGroup:
			r.group = incoming{by: t, awaited: rec.Value}
		case rec.Mark >= markBegin:
			r.enter(t, rec, 0, rec.Mark-markBegin)
		case isValue && metric < len(r.plan.Metrics):
			r.value(t, rec)
		}
	}
	return r.found
}

// stack takes a record of a place on the stack of the thread, or of the goroutine of the record before. Places
// on the stacks of goroutines are negative: one without a goroutine follows a loss.
func (r *Recorder) stack(t *recordedThread, rec *Record) {
	switch {
	case rec.Value < 0 && t.goroutine == 0:
	case rec.Mark == markEnter:
		r.enter(t, rec, r.place(rec), -1)
	default:
		r.leave(t, rec, r.place(rec), -1)
	}
	t.goroutine = 0
}

// place returns what pairs an entry with an exit: the place on the stack, or, if the region is from one unit to
// another, the thread or the goroutine alone.
func (r *Recorder) place(rec *Record) uint64 {
	if r.plan.Gains.crosses {
		return 1
	}
	return uint64(rec.Value)
}

func (r *Recorder) of(rec *Record) *recordedThread {
	t := r.threads[rec.Thread]
	if t == nil {
		// Most of those that are dropped have ended. If one executes the region again, the count of its process
		// contains it twice.
		dropOldest(r.threads, func(t *recordedThread) int64 { return t.last })
		t = &recordedThread{process: rec.Process, thread: rec.Thread, counts: make(map[int]recordedCount), pending: taken{own: make(map[int]uint64)}}
		t.own.process, t.own.thread = rec.Process, rec.Thread
		r.threads[rec.Thread] = t
	}
	return t
}

// mostThreads is the largest number of threads, and of goroutines, whose counts and open executions the recorder keeps.
const mostThreads = 10_000

// value takes a value of a metric.
func (r *Recorder) value(t *recordedThread, rec *Record) {
	metric := rec.Mark - markValue
	m := r.plan.Metrics[metric]
	switch {
	case m.source == fromCounter || m.source == fromEvents && !r.plan.OnRegion():
		r.count(t, rec)
	default:
		t.pending.own[metric] = uint64(max(rec.Value, 0))
	}
	switch {
	case !r.plan.OnRegion() && m.source == fromEvents:
		r.emit(t, rec.Time, Executed, metric)
	case !r.plan.OnRegion():
		r.leave(t, rec, 0, metric)
	case r.solo:
		r.emit(t, rec.Time, Executed, -1)
	}
}

func (r *Recorder) count(t *recordedThread, rec *Record) {
	c := t.counts[rec.Mark-markValue]
	before, v := c.base+c.last, uint64(max(rec.Value, 0))
	if v <= c.last {
		c.base += c.last
	}
	c.last = v
	t.counts[rec.Mark-markValue] = c
	if r.totals != nil && r.plan.Metrics[rec.Mark-markValue].source == fromCounter {
		r.totals[t.process] += c.base + c.last - before
	}
}

// emit adds an execution with the values so far. It clears the values that belong to one execution;
// counts continue.
func (r *Recorder) emit(t *recordedThread, at int64, what What, metric int) {
	e := Execution{Process: t.process, Thread: t.thread, Goroutine: t.goroutine, Time: at, What: what, Metric: metric, Measured: make(map[int]uint64)}
	for m, c := range t.counts {
		if metric < 0 || m == metric {
			e.Measured[m] = c.base + c.last
		}
	}
	maps.Copy(e.Measured, t.pending.own)
	e.Group = t.pending.group
	t.pending.clear()
	if r.totals != nil {
		e.others = maps.Clone(r.totals)
		e.others[t.process] -= r.counted(t)
	}
	r.found = append(r.found, e)
}

// Values returns the values of an execution in the form of Plan.Values: those of the thread, or of the
// group that is measured with it, and the counts of entities that contain the thread. Other entities
// have no value.
func (r *Recorder) Values(e *Execution) []Value {
	rd := &reading{events: make(map[string][]row), gains: make(map[gained][]row)}
	measured := make([][]row, len(r.plan.Metrics))
	for i, m := range r.plan.Metrics {
		measured[i] = e.seen(i, executing)
		switch {
		case m.source == fromCounter:
			measured[i] = e.counts(i)
			rd.counts = measured[i]
		case m.source == fromTimer:
			rd.timers = measured[i]
		case m.source == fromCPUTimer:
			rd.cpu = measured[i]
		case r.plan.Gains.has(m):
			for _, v := range r.plan.Gains.views {
				rd.gains[gained{m.Name, v}] = e.seen(i, v)
			}
		default:
			rd.events[m.Name] = measured[i]
		}
	}
	vs := slices.DeleteFunc(r.plan.values(rd), func(v Value) bool { return v.Instance.level == mir.Thread && v.Instance.Thread == "" })
	for i := range vs {
		v := &vs[i]
		if !r.plan.Gains.has(r.plan.Metrics[v.Metric]) && !slices.ContainsFunc(measured[v.Metric], func(r row) bool { return v.Instance.has(&r) }) {
			v.Stats = Stats{}
		}
	}
	return vs
}

// counted returns the COUNT of a thread.
func (r *Recorder) counted(t *recordedThread) uint64 {
	for m, c := range t.counts {
		if r.plan.Metrics[m].source == fromCounter {
			return c.base + c.last
		}
	}
	return 0
}

// counts returns the rows of a count: of the thread, and of the other threads for an entity that
// contains them.
func (e *Execution) counts(metric int) []row {
	rows := e.seen(metric, executing)
	for process, n := range e.others {
		rows = append(rows, row{process: process, stats: single(n)})
	}
	return rows
}

// String returns the word that documents use for what happened.
func (w What) String() string {
	return [...]string{"", "happen", "enter", "leave", "abandon", "cut", "unmatched"}[w]
}

// Follow replaces the plan by one for the same probe that measures more processes.
func (r *Recorder) Follow(p *Plan) { r.plan = p }

// NamedValue is the value of a metric as documents show it.
type NamedValue struct{ Metric, Value string }

// Named returns the values of an execution, in the order of the request, those of a group with their threads.
func (p Records) Named(e *Execution) []NamedValue {
	var list []NamedValue
	for i, m := range p.Metrics {
		if v, ok := e.Measured[i]; ok {
			s := single(v)
			list = append(list, NamedValue{m.Name, s.text("", m.unit())})
		}
		for _, v := range e.Group {
			if v.Metric == i {
				s := single(v.Value)
				list = append(list, NamedValue{m.Name + " " + string(v.Thread), s.text("", m.unit())})
			}
		}
	}
	return list
}

// NameOf returns the name of what an execution executes: the region, or the metric whose event
// it is.
func (p Records) NameOf(e *Execution) string {
	if e.Metric >= 0 {
		return p.Metrics[e.Metric].Name
	}
	return p.Region
}
