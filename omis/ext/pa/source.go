package pa

import (
	"iter"
	"sync"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A timer can have a counter or another timer as its clock, its source: an interval is what the
// source gained for the thread between the two ends. The thread is held when the monitor
// reads the source, on the goroutine that owns the process, so the source must not wait.

// source is a counter or a timer that is the clock of a timer.
type source interface {
	service.Sourced
	// shows adds the values of threads to a map: counts, or sums of nanoseconds. of limits it to one
	// thread, unless it is nil.
	shows(values map[owner]int64, of *owner) error
	becomeSource()
}

var _, _ source = (*counter)(nil), (*timer)(nil)

// IsSource implements service.Sourced.
func (c *counter) IsSource() bool { return c.feeds.isSource.Load() }

// IsSource implements service.Sourced.
func (t *timer) IsSource() bool { return t.feeds.isSource.Load() }

func (c *counter) becomeSource() { c.feeds.isSource.Store(true) }
func (t *timer) becomeSource()   { t.feeds.isSource.Store(true) }

func (c *counter) shows(values map[owner]int64, of *owner) error {
	return c.feeds.shows(values, of, &c.mu, c.ownValues, func(r *program.Row) int64 { return r.Value })
}

// ownValues yields the values of the rows in the monitor's memory. The caller holds mu.
func (c *counter) ownValues(yield func(owner, int64) bool) {
	for _, r := range c.rows {
		if !yield(r.owner, r.value) {
			return
		}
	}
}

func (t *timer) shows(values map[owner]int64, of *owner) error {
	return t.feeds.shows(values, of, &t.mu, t.ownValues, func(r *program.Row) int64 { return int64(r.Sum.Lo) })
}

func (t *timer) ownValues(yield func(owner, int64) bool) {
	for _, r := range t.rows {
		if !yield(r.owner, int64(r.sum.Lo)) {
			return
		}
	}
}

// mostMoves is how often a source may move to another placement while it is read.
const mostMoves = 100

// shows adds up what the object itself and its stores have of threads. A store may leave
// meanwhile, and the object takes over its rows; then shows begins again. mu is the object's
// own lock.
func (f *feeds) shows(values map[owner]int64, of *owner, mu *sync.Mutex, own iter.Seq2[owner, int64], value func(*program.Row) int64) error {
	for range mostMoves {
		clear(values)
		add := func(o owner, v int64) {
			if of == nil || o == *of {
				values[o] += v
			}
		}
		mu.Lock()
		live := f.live.Load()
		for o, v := range own {
			add(o, v)
		}
		mu.Unlock()
		if live == nil {
			return nil
		}
		for _, s := range *live {
			r, able := s.(service.RawReader)
			if !able {
				return omis.Errorf(omis.UnsupportedService, "a source of a timer is in a placement that the monitor cannot read while it holds a thread")
			}
			rows, err := r.RawRows()
			if err != nil {
				return err
			}
			for i := range rows {
				add(owner{rows[i].Proc, rows[i].Thread}, value(&rows[i].Row))
			}
		}
		if f.live.Load() == live {
			return nil
		}
	}
	return omis.Errorf(omis.OSError, "a source of a timer cannot be read: it moves from one placement to another all the time")
}

// Source implements service.Clocked.
func (t *timer) Source() service.Cell {
	if t.source == nil {
		return nil
	}
	return t.source
}

// sourceServices returns the table rows of the services for timers with a source, and for
// single readings of a clock.
func sourceServices() []service.Service {
	threads := service.TokensParam("thread_list", omis.ClassThread)
	const doc = "; one_in and keep are as for pa_timer_create4. Where a service returns seconds, one of the clock is a billionth; pa_timer_exact returns whole numbers"
	return []service.Service{
		{
			Name: "pa_timer_over_counter", Action: createOver, Class: classTimer, Object: classCounter, Result: "token",
			Params: []service.Param{counters(), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make for each counter a timer whose clock is the counter, and return its token: an interval is the value that the counter has of the thread at the end, minus its value at the beginning" + doc,
		},
		{
			Name: "pa_timer_over_timer", Action: createOver, Class: classTimer, Object: classTimer, Result: "token",
			Params: []service.Param{timers(), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make for each timer another timer whose clock is the first one: an interval is the total time that the first has of the thread at the end, minus its total at the beginning" + doc,
		},
		{
			Name: "pa_timer_over_counter2", Action: createGroup, Class: classTimer, Object: classCounter, Result: "token",
			Params: []service.Param{counters(), service.IntegerParam("one_in"), service.StringParam("keep"), threads},
			Doc:    "make timers as pa_timer_over_counter does, but an interval measures all live threads of thread_list, which may contain processes, whichever thread begins and ends it; [] means all threads of the processes in which the counter has rows. The monitor executes the requests that use such a timer",
		},
		{
			Name: "pa_timer_over_timer2", Action: createGroup, Class: classTimer, Object: classTimer, Result: "token",
			Params: []service.Param{timers(), service.IntegerParam("one_in"), service.StringParam("keep"), threads},
			Doc:    "make timers as pa_timer_over_timer does, but for the threads of thread_list, as pa_timer_over_counter2 does",
		},
		{
			Name: "pa_timer_over_counter3", Action: createBeside, Class: classTimer, Object: classCounter, Result: "token",
			Params: []service.Param{counters(), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make timers as pa_timer_over_counter2 does, but an interval measures all live threads of the process whose thread begins and ends it",
		},
		{
			Name: "pa_timer_over_timer3", Action: createBeside, Class: classTimer, Object: classTimer, Result: "token",
			Params: []service.Param{timers(), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make timers as pa_timer_over_timer does, but for all threads of a process, as pa_timer_over_counter3 does",
		},
		{
			Name: "pa_timer_take", Action: takeTimer, Compile: compileTake, Class: classTimer, Object: classTimer, Local: true,
			Params: []service.Param{timers()},
			Doc:    "measure the present value of the clock, as if an interval had begun when the clock showed 0; for timers whose clock is a counter, a timer or a number that the kernel keeps of the thread",
		},
	}
}

// createOver makes a timer whose clock is the object.
func createOver(c *service.Call) ([]omis.Value, error) { return makeOver(c, nil) }

// createGroup makes such a timer for a group of threads.
func createGroup(c *service.Call) ([]omis.Value, error) {
	return makeOver(c, groupOf(c.Args[3]))
}

// createBeside makes such a timer for all threads of the process that executes the region.
func createBeside(c *service.Call) ([]omis.Value, error) { return makeOver(c, &group{own: true}) }

func groupOf(threads omis.Value) *group {
	g := &group{among: make(map[omis.Token]bool)}
	for _, v := range threads.List {
		g.among[v.Token()] = true
	}
	return g
}

func makeOver(c *service.Call, g *group) ([]omis.Value, error) {
	t := newTimer()
	t.clock, t.source, t.group = program.ClockCell, c.Object.(source), g
	if err := t.configure(c.Args[1], c.Args[2]); err != nil {
		return nil, err
	}
	t.source.becomeSource()
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}

func compileTake([]service.Argument) (program.Op, error) { return program.Op{Do: program.OpTake}, nil }

func takeTimer(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil {
		return nil, noEvent()
	}
	t, o := c.Object.(*timer), owner{c.Event.Proc, c.Event.Thread}
	if err := t.canTime(c.Event.At); err != nil {
		return nil, err
	}
	if t.clock.IsTime() {
		return nil, omis.Errorf(omis.ParameterError, "the clock of the timer is time, whose value at an instant means nothing: use pa_timer_start and pa_timer_stop")
	}
	if t.group != nil {
		return nil, t.group.take(t, c.Event)
	}
	v, err := t.at(c.Event)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(o).measured(uint64(max(v, 0)))
	c.Event.Measured, c.Event.Measures = max(v, 0), true
	return nil, nil
}

// reads returns the value that the timer's source has for a thread.
func (t *timer) reads(o owner) (int64, error) {
	values := make(map[owner]int64, 1)
	err := t.source.shows(values, &o)
	return values[o], err
}
