package pa

import (
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
	// shows returns the value that a thread has: a count, or a sum of nanoseconds.
	shows(owner) (int64, error)
	becomeSource()
}

var _, _ source = (*counter)(nil), (*timer)(nil)

// IsSource implements service.Sourced.
func (c *counter) IsSource() bool { return c.feeds.isSource.Load() }

// IsSource implements service.Sourced.
func (t *timer) IsSource() bool { return t.feeds.isSource.Load() }

func (c *counter) becomeSource() { c.feeds.isSource.Store(true) }
func (t *timer) becomeSource()   { t.feeds.isSource.Store(true) }

func (c *counter) shows(o owner) (int64, error) {
	own := func() int64 {
		if r := c.byThread[o]; r != nil {
			return r.value
		}
		return 0
	}
	return c.feeds.shows(&c.mu, o, own, func(r *program.Row) int64 { return r.Value })
}

func (t *timer) shows(o owner) (int64, error) {
	own := func() int64 {
		if r := t.byThread[o]; r != nil {
			return int64(r.sum.Lo)
		}
		return 0
	}
	return t.feeds.shows(&t.mu, o, own, func(r *program.Row) int64 { return int64(r.Sum.Lo) })
}

// mostMoves is how often a source may move to another placement while it is read.
const mostMoves = 100

// shows adds up what the object itself and its stores have of a thread. A store may leave
// meanwhile, and the object takes over its rows; then shows begins again. mu is the object's
// own lock.
func (f *feeds) shows(mu *sync.Mutex, o owner, own func() int64, of func(*program.Row) int64) (int64, error) {
	for range mostMoves {
		mu.Lock()
		live, sum := f.live.Load(), own()
		mu.Unlock()
		if live == nil {
			return sum, nil
		}
		for _, s := range *live {
			r, able := s.(service.RowReader)
			if !able {
				return 0, omis.Errorf(omis.UnsupportedService, "a source of a timer is in a placement that the monitor cannot read while it holds a thread")
			}
			row, err := r.RowOf(o.thread)
			if err != nil {
				return 0, err
			}
			sum += of(&row)
		}
		if f.live.Load() == live {
			return sum, nil
		}
	}
	return 0, omis.Errorf(omis.OSError, "a source of a timer cannot be read: it moves from one placement to another all the time")
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
			Name: "pa_timer_take", Action: takeTimer, Compile: compileTake, Class: classTimer, Object: classTimer, Local: true,
			Params: []service.Param{timers()},
			Doc:    "measure the present value of the clock, as if an interval had begun when the clock showed 0; for timers whose clock is a counter, a timer or a number that the kernel keeps of the thread",
		},
	}
}

// createOver makes a timer whose clock is the object.
func createOver(c *service.Call) ([]omis.Value, error) {
	t := newTimer()
	t.clock, t.source = program.ClockCell, c.Object.(source)
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
	v, err := t.reads(o)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(o).measured(uint64(max(v, 0)))
	c.Event.Measured, c.Event.Measures = max(v, 0), true
	return nil, nil
}

// reads returns the value of a clock that does not run.
func (t *timer) reads(o owner) (int64, error) {
	if t.source == nil {
		return 0, omis.Errorf(omis.UnsupportedService, "%s", program.NotHeld)
	}
	return t.source.shows(o)
}
