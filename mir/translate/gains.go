package translate

import (
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
)

// A metric is measured at the beginning and at the end of a region, in the thread that executes the
// region, and the value is the difference; with from or to alone it is the value at this
// instant (MIR 4). So the plan has for such a metric a timer whose clock is the counter or the
// timer of the metric's events, or a number that the kernel keeps of each thread. COUNT, WC_TIME
// and CPU_TIME need no such timer: what they count and time are executions of the region.

// ends says where a plan measures the metrics of Gains.
type ends uint8

const (
	nowhere ends = iota // the plan has no region
	bothEnds
	atBeginning
	atEnd
)

func endsOf(c *mir.CodeRegion) ends {
	switch {
	case c == nil:
		return nowhere
	case c.To == "":
		return atBeginning
	case c.From == "":
		return atEnd
	}
	return bothEnds
}

// gains reports whether the metric is measured on a region as what it gains there.
func (m Metric) gains() bool {
	return m.Unavailable == "" && (m.onEvents() || m.task != "" || m.level != "")
}

// Gains are the metrics that a plan measures as what they gain on its region.
type Gains struct {
	ends    ends
	metrics []Metric // in the order of Handles.Gains
	oneIn   int64    // see Plan
	spread  bool     // timers keep histograms
	crosses bool     // the region is from one unit to another: see crossing.go
	group   *group   // nil: they are measured in the thread that executes the region
}

// group lists threads that are measured whenever any thread executes the region (MIR 4): given
// threads, all threads of given processes, or all threads.
type group struct {
	among []omis.Token // empty: all threads
	all   []omis.Token // the processes of the request
}

// gainsOf returns the gains among the metrics of a request.
func gainsOf(r *mir.InstrRequest, ms []Metric) Gains {
	g := Gains{ends: endsOf(r.Region), oneIn: r.OneIn, spread: len(r.Percentiles) > 0}
	for _, m := range ms {
		if g.has(m) {
			g.metrics = append(g.metrics, m)
		}
	}
	return g
}

// has reports whether a metric of the plan is measured as what it gains on the region.
func (g *Gains) has(m Metric) bool { return g.ends != nowhere && m.gains() }

func (g *Gains) any() bool { return len(g.metrics) > 0 }

// adds reports whether the values of a metric are added up over executions of a region.
func (g *Gains) adds(m Metric) bool { return m.times() || g.has(m) && m.level == "" }

// timesExecutions reports whether the plan measures each execution with a timer.
func (p *Plan) timesExecutions() bool { return p.Times() || p.TimesCPU() || p.Gains.any() }

// leaves reports whether the plan measures where the region is left, although it is also entered.
func (p *Plan) leaves() bool {
	return p.Times() || p.TimesCPU() || p.Gains.any() && p.Gains.ends == bothEnds
}

// Create returns the request that creates the timers on the region, after Plan.Bind has read the
// tokens of their clocks; "" if there are none. Bind reads the reply.
func (g *Gains) Create(h Handles) string {
	var actions []string
	source := 0
	for _, m := range g.metrics {
		if m.task != "" {
			actions = append(actions, g.createOfTask(m))
			continue
		}
		if m.level != "" {
			actions = append(actions, createTimer("", 0, g.spread))
			continue
		}
		over, of := strings.TrimPrefix(m.object(), "pa_"), "" // counter or timer
		if g.group != nil {
			over, of = over+"2", ","+list(g.group.among)
		}
		actions = append(actions, fmt.Sprintf("pa_timer_over_%s([%s],%d,%q%s)", over, h.Events[source], max(g.oneIn, 1), g.keep(), of))
		source++
	}
	return unconditional(actions)
}

// createOfTask returns the action that creates a timer whose clock is a number of the kernel.
func (g *Gains) createOfTask(m Metric) string {
	if g.group == nil {
		return createTimer(m.task, g.oneIn, g.spread)
	}
	among := g.group.among
	if len(among) == 0 {
		among = g.group.all
	}
	return fmt.Sprintf("pa_timer_create5(%q,%d,%q,%s)", m.task, max(g.oneIn, 1), g.keep(), list(among))
}

// keep returns what timers keep.
func (g *Gains) keep() string {
	if g.spread {
		return "histogram"
	}
	return "sums"
}

// Bind adds the tokens in the reply to Create.
func (g *Gains) Bind(reply omis.Reply, h *Handles) error {
	for i := range g.metrics {
		t, err := Token(reply, i+1)
		if err != nil {
			return err
		}
		h.Gains = append(h.Gains, t)
	}
	return nil
}

// setGroup determines the threads to measure, if a request names other threads than the one that
// executes the region.
func (g *Gains) setGroup(es []entity, processes []omis.Token) Errors {
	others := slices.DeleteFunc(slices.Clone(es), func(e entity) bool { return e.kind != mir.Thread || e.thread == current })
	if !g.any() || len(others) == 0 {
		return nil
	}
	var errs Errors
	if len(others) < len(es) {
		errs = append(errs, Errorf(CannotBeDone, others[0].pos, "thread %q: one probe measures %s either for the thread that executes the region or for given threads: make two probes", others[0].thread, g.metrics[0].Name))
	}
	for i := range g.metrics {
		m := &g.metrics[i]
		switch {
		case m.isShaken():
			errs = append(errs, Errorf(CannotBeDone, others[0].pos, "thread %q: on a region, %s is measured only for the thread that executes the region: write \"?\". The monitor holds this thread to read what it counts for others, which changes %[2]s", others[0].thread, m.Name))
		case m.meter != "":
			m.task = byMonitor + m.meter
		}
	}
	g.group = &group{all: processes}
	for _, e := range others {
		switch {
		case named(e.thread):
			g.group.among = append(g.group.among, omis.Token(e.thread))
		case named(e.process):
			g.group.among = append(g.group.among, omis.Token(e.process))
		case e.process == current:
			errs = append(errs, Errorf(CannotBeDone, e.pos, "thread \"*\" of process \"?\": name the process, or write \"*\" for all processes"))
		default:
			g.group.among = nil
			return errs
		}
	}
	return errs
}

// begun returns the actions where the region is entered, ended those where it is left.
func (g *Gains) begun(h Handles) []string {
	switch timers := g.timers(h); g.ends {
	case bothEnds:
		return append(g.takesLevels(h), g.starts(timers)...)
	case atBeginning:
		return append(g.takesLevels(h), calls("pa_timer_take", timers)...)
	}
	return nil
}

func (g *Gains) ended(h Handles) []string {
	switch timers := g.timers(h); g.ends {
	case bothEnds:
		return append(g.stops(timers), g.takesLevels(h)...)
	case atEnd:
		return append(calls("pa_timer_take", timers), g.takesLevels(h)...)
	}
	return nil
}

// timers returns the timers of the metrics that are no levels.
func (g *Gains) timers(h Handles) (list []omis.Token) {
	for i, m := range g.metrics {
		if m.level == "" {
			list = append(list, h.Gains[i])
		}
	}
	return list
}

// takesLevels returns the actions that read the levels. They are not part of what timers measure.
func (g *Gains) takesLevels(h Handles) (list []string) {
	for i, m := range g.metrics {
		if m.level != "" {
			list = append(list, fmt.Sprintf("pa_timer_take_level([%s],%q)", h.Gains[i], m.level))
		}
	}
	return list
}

// takesLevel reports whether a metric of the plan is a level that is read at the instants of a region.
func (g *Gains) takesLevel(m Metric) bool { return g.has(m) && m.level != "" }

func calls(service string, objects []omis.Token) []string {
	list := make([]string, len(objects))
	for i, t := range objects {
		list[i] = call(service, t)
	}
	return list
}

// Imagined returns the tokens of objects as a monitor would assign them if it had created no
// others.
func (p *Plan) Imagined() (h Handles) {
	last := make(map[string]int)
	next := func(class string) omis.Token {
		last[class]++
		return omis.Token(fmt.Sprint(class, "_", last[class]))
	}
	if hasCounter(p) {
		h.Counter = next("pa_c")
	}
	if p.Gains.crosses {
		h.Ends = next("pa_c")
	}
	if p.Times() {
		h.Timer = next("pa_t")
	}
	if p.TimesCPU() {
		h.CPUTimer = next("pa_t")
	}
	for _, m := range p.eventMetrics() {
		h.Events = append(h.Events, next(m.object()[:len("pa_x")]))
	}
	for range p.Gains.metrics {
		h.Gains = append(h.Gains, next("pa_t"))
	}
	if p.Recorded {
		h.Trace = next("pa_b")
	}
	return h
}
