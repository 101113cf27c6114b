package translate

import (
	"cmp"
	"slices"

	"mirador/mir"
	"mirador/omis"
)

// Plan is the translation of an instrumentation request. It is immutable; Handles has the
// tokens that the monitor assigns for it.
type Plan struct {
	Metrics   []Metric       // in the order of the request
	Functions []mir.Function // none: the last value (MIR 4)
	Region    string         // the unit's name; "" without a region
	Fast      bool           // use the fast clock, where there is a choice
	OneIn     int64          // time one in so many executions; 0: all
	Percent   []float64      // percentiles to report; none: keep only sums
	Places    []Place        // addresses where the region is entered and left
	Gains     Gains          // metrics that are measured as what they gain on the region
	Recorded  bool           // keep records of executions; see record.go
	Traced    bool           // the records are an event trace
	Besides   string         // what the region lacks that its name may suggest, "" for nothing

	requested []mir.Entity
	entities  []entity
	scopes    []scope
	away      []omis.Token // processes that have closed the library of the region
}

// Handles has the tokens of an installed Plan.
type Handles struct {
	Counter, Timer omis.Token   // "" if the plan needs none
	CPUTimer       omis.Token   // "" if the plan needs none
	Events         []omis.Token // objects of metrics that are measured at events, in the order of the request
	Gains          []omis.Token // timers of metrics that are measured as what they gain on a region, in the order of the request
	Trace          omis.Token   // "" if the plan keeps no records
	Ends           omis.Token   // counter of the ends of a region from one unit to another; its Counter has the beginnings
	Requests       []omis.Token // the conditional requests, in the order of Plan.Conditional
}

// Instrument translates an instrumentation request that measures something. It reports all
// errors at once, as Errors.
func Instrument(r *mir.InstrRequest, t *Targets) (*Plan, error) {
	p := &Plan{
		requested: assumed(r.Entities, r.Region != nil, t.Node.Site), Functions: r.Measuring.Functions(),
		Fast: r.Fast, OneIn: r.OneIn, Percent: r.Percentiles,
	}
	var errs Errors
	p.Metrics, errs = metrics(r, t)
	p.Gains = gainsOf(r, p.Metrics)
	if len(errs) == 0 {
		errs = slices.Concat(p.sampling(r), p.spreading(r), Records{p}.recorded(r))
	}
	errs = append(errs, p.checkTimes(r)...)
	found, wrong := entities(r.Entities, r.Region != nil, t)
	errs = append(errs, wrong...)
	p.entities, p.scopes = found, scopes(found, t)
	errs = append(errs, p.Gains.setViews(found, p.processTokens())...)
	for i := range found {
		errs = append(errs, p.measurable(&found[i])...)
	}
	errs = append(errs, p.findFunctions(r, t)...)
	if r.Region != nil {
		errs = append(errs, p.locate(r.Region, t)...)
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// metrics finds the metrics of a request.
func metrics(r *mir.InstrRequest, t *Targets) ([]Metric, Errors) {
	var ms []Metric
	var errs Errors
	for _, asked := range r.Metrics {
		m, ok := metric(asked.Name, r.Region != nil)
		if !ok {
			errs = append(errs, Errorf(CannotBeDone, asked.Pos, "%s", unknown(asked.Name)))
			continue
		}
		if m = m.With(t.Lacks); m.Unavailable != "" {
			errs = append(errs, Errorf(CannotBeDone, asked.Pos, "%s cannot be measured: %s", m.Name, m.Unavailable))
			continue
		}
		if r.Region != nil && (m.task != "" || m.level != "") {
			m.source, m.info = fromTask, info{}
		}
		ms = append(ms, m)
		errs = append(errs, m.suits(r, asked.Pos)...)
	}
	readTogether(ms)
	switch {
	case r.Events > 0: // an event trace needs no metric
	case len(r.Metrics) == 0:
		errs = append(errs, Errorf(Invalid, place(r), "nothing to measure: add a metric, such as COUNT or WC_TIME on a region, or CPU_TIME; GET /catalog lists them"))
	}
	return ms, errs
}

// readTogether makes the monitor read all metrics of performance counters on a region, if it must read one
// of them: what the kernel and what the monitor reads cannot be in one request.
func readTogether(ms []Metric) {
	if !slices.ContainsFunc(ms, func(m Metric) bool { return m.source == fromTask && m.held() }) {
		return
	}
	for i := range ms {
		if m := &ms[i]; m.meter != "" {
			m.task = byMonitor + m.meter
		}
	}
}

// suits checks a metric against the region of a request.
func (m Metric) suits(r *mir.InstrRequest, pos mir.Position) Errors {
	switch {
	case !m.Alone && r.Region == nil:
		return Errors{Errorf(CannotBeDone, pos, "%s is measured on a region: add a codeRegion", m.Name)}
	case !m.Region && r.Region != nil:
		why := cmp.Or(m.elsewhere, "GET /catalog shows the metrics that are")
		return Errors{Errorf(CannotBeDone, pos, "%s is not measured on a region; %s", m.Name, why)}
	case m.times() && r.Region.From == "":
		return Errors{Errorf(CannotBeDone, pos, "%s needs the beginning of the region: add \"from\"", m.Name)}
	}
	return nil
}

// times reports whether the metric is an interval between two places in the code.
func (m Metric) times() bool { return m.source == fromTimer || m.source == fromCPUTimer }

// place returns the position for an error about something that is missing.
func place(r *mir.InstrRequest) mir.Position {
	if r.Region != nil {
		return r.Region.Pos
	}
	for _, e := range r.Entities {
		return e.Pos
	}
	return mir.Position{}
}

// measurable checks that all metrics exist for an entity.
func (p *Plan) measurable(e *entity) Errors {
	var errs Errors
	for _, m := range p.Metrics {
		if p.Gains.takesLevel(m) {
			if wrong := m.levelOf(e); wrong != nil {
				errs = append(errs, wrong)
			}
			continue
		}
		if !m.supports(e.kind) {
			errs = append(errs, Errorf(CannotBeDone, e.pos, "%s is not measured for a %s", m.Name, e.kind))
		}
	}
	return errs
}

// levelOf checks the entity of a level on a region. The level is one of the process whose thread executes
// the region; for the thread "?", each reading is shown with the thread that executed the region.
func (m Metric) levelOf(e *entity) *Error {
	switch {
	case e.kind == mir.Process, e.kind == mir.Thread && e.thread == current:
		return nil
	case e.kind == mir.Thread:
		return Errorf(CannotBeDone, e.pos, "thread %q: %s is a level of a process: name the process alone, or write \"?\" for the thread that executes the region", e.thread, m.Name)
	}
	return Errorf(CannotBeDone, e.pos, "%s is read on a region for the process that executes it: name processes, or write \"*\"", m.Name)
}

// locate finds the region and the places where to measure it.
func (p *Plan) locate(c *mir.CodeRegion, t *Targets) Errors {
	r, end, wrong := findRegion(c, t)
	if wrong != nil {
		return Errors{wrong}
	}
	p.Region = r.name
	if end != nil {
		crossing(p, end)
	} else if wrong := markerAlone(p, r, c); wrong != nil {
		return Errors{wrong}
	}
	var errs Errors
	for _, e := range p.entities {
		if owner := ownerOf(&e, t); owner != "" && !(r.in(owner) && (end == nil || end.in(owner))) && !(p.Gains.others() && e.view() != executing) {
			errs = append(errs, Errorf(NotFound, e.pos, "process %s has no %s", owner, p.Region))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if wrong := p.sharedExits(c, t); wrong != nil {
		return Errors{wrong}
	}
	within := p.processTokens()
	if p.Gains.others() { // any thread may execute the region
		within = nil
		for i := range t.Processes {
			within = append(within, t.Processes[i].Token)
		}
	}
	places, err := r.places(within, p.leaves() || p.Traced)
	if err == nil && end != nil {
		var left []Place
		left, err = end.places(within, true)
		places = append(places, left...)
	}
	if err != nil {
		return Errors{Errorf(CannotBeDone, c.Pos, "%v", err)}
	}
	p.Places = places
	if end == nil {
		p.Besides = besides(r, t)
	}
	return nil
}

// ownerOf returns the process that an entity names, directly or by its thread.
func ownerOf(e *entity, t *Targets) omis.Token {
	if named(e.process) {
		return omis.Token(e.process)
	}
	if named(e.thread) {
		return t.owner(e.thread).Token
	}
	return ""
}

func (p *Plan) uses(s source) bool {
	for _, m := range p.Metrics {
		if m.source == s {
			return true
		}
	}
	return false
}

// OnRegion reports whether the plan watches places in the code.
func (p *Plan) OnRegion() bool { return p.Region != "" }

// With returns the plan with other statistics of the same measurements.
func (p *Plan) With(m *mir.Measuring) *Plan {
	q := *p
	q.Functions = m.Functions()
	return &q
}

// Counts reports whether the plan needs a counter of the monitor.
func (p *Plan) Counts() bool { return p.uses(fromCounter) }

// Times reports whether the plan needs a timer of wall clock time.
func (p *Plan) Times() bool { return p.uses(fromTimer) }

// TimesCPU reports whether the plan needs a timer of CPU time.
func (p *Plan) TimesCPU() bool { return p.uses(fromCPUTimer) }

// Outlived reports whether all measured processes have terminated.
func (p *Plan) Outlived(gone []omis.Token) bool {
	for _, s := range p.scopes {
		if !slices.Contains(gone, s.process) && (!p.OnRegion() || p.Measures(s.process) || (Libraries{p}).Away(s.process)) {
			return false
		}
	}
	return len(p.scopes) > 0
}

// Executions returns the number of executions of the region, as far as the metrics record it.
func (p *Plan) Executions(vs []Value) int64 {
	executed := make([]int64, max(len(p.Metrics), 1))
	for _, v := range vs {
		m := p.Metrics[v.Metric]
		if p.Gains.takesLevel(m) && p.Gains.ends == bothEnds {
			executed[v.Metric] += v.Stats.N / 2
		} else if !p.Gains.has(m) && (m.source == fromCounter || m.source == fromEvents) {
			executed[v.Metric] += int64(v.Stats.Last)
		} else {
			executed[v.Metric] += max(v.Stats.N, v.Stats.Sampled.Begun)
		}
	}
	return slices.Max(executed)
}

// HitsEach returns the number of hits of one execution of the region.
func (p *Plan) HitsEach() int {
	entered, left := 0, 0
	for _, place := range p.Places {
		if place.Exit {
			left = 1
		} else {
			entered = 1
		}
	}
	return entered + left
}

// Open reports whether the plan names no process and no thread, so that it includes future
// ones.
func (p *Plan) Open() bool {
	return !slices.ContainsFunc(p.entities, func(e entity) bool { return named(e.process) || named(e.thread) })
}
