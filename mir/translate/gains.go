package translate

import (
	"fmt"
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
	metrics []Metric     // in the order of the request
	oneIn   int64        // see Plan
	spread  bool         // timers keep histograms
	crosses bool         // the region is from one unit to another: see crossing.go
	views   []view       // each metric has a timer for each view: see view.go
	among   []omis.Token // the threads and processes of the view given; empty: all threads
	all     []omis.Token // the processes of the request
}

// gainsOf returns the gains among the metrics of a request.
func gainsOf(r *mir.InstrRequest, ms []Metric) Gains {
	g := Gains{ends: endsOf(r.Region), oneIn: r.OneIn, spread: len(r.Percentiles) > 0, views: []view{executing}}
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
	for _, v := range g.views {
		source := 0
		for _, m := range g.metrics {
			switch {
			case m.task != "":
				actions = append(actions, g.createOfTask(m, v))
			case m.level != "":
				actions = append(actions, createTimer("", 0, g.spread))
			default:
				actions = append(actions, g.createOver(m, h.Events[source], v))
				source++
			}
		}
	}
	return unconditional(actions)
}

// createOver returns the action that creates a timer whose clock is a counter or a timer.
func (g *Gains) createOver(m Metric, source omis.Token, v view) string {
	over := "pa_timer_over_" + strings.TrimPrefix(m.object(), "pa_")
	configured := fmt.Sprintf("[%s],%d,%q", source, max(g.oneIn, 1), g.keep())
	switch v {
	case given:
		return fmt.Sprintf("%s2(%s,%s)", over, configured, list(g.among))
	case sameProcess:
		return fmt.Sprintf("%s3(%s)", over, configured)
	}
	return fmt.Sprintf("%s(%s)", over, configured)
}

// createOfTask returns the action that creates a timer whose clock is a number of the kernel.
func (g *Gains) createOfTask(m Metric, v view) string {
	var of []omis.Token
	switch {
	case v == executing:
		return createTimer(m.task, g.oneIn, g.spread)
	case v == given && len(g.among) > 0:
		of = g.among
	case v == given:
		of = g.all
	}
	return fmt.Sprintf("pa_timer_create5(%q,%d,%q,%s)", m.task, max(g.oneIn, 1), g.keep(), list(of))
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
	for i := range len(g.views) * len(g.metrics) {
		t, err := Token(reply, i+1)
		if err != nil {
			return err
		}
		h.Gains = append(h.Gains, t)
	}
	return nil
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
	for i, t := range h.Gains {
		if g.metrics[i%len(g.metrics)].level == "" {
			list = append(list, t)
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
	for range len(p.Gains.views) * len(p.Gains.metrics) {
		h.Gains = append(h.Gains, next("pa_t"))
	}
	if p.Recorded {
		h.Trace = next("pa_b")
	}
	return h
}
