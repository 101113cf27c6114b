package pa

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// timer measures intervals for each thread. Its methods may be called from any goroutine.
type timer struct {
	feeds    feeds // its lock is taken before mu
	mu       sync.Mutex
	rows     []*row // in the order of each thread's first interval
	byThread map[owner]*row
	// goroutines holds the open intervals of goroutines, which may change their threads.
	goroutines map[goroutine]*stack
	clock      program.Clock
	source     source    // of program.ClockCell; nil for other clocks
	metering   *metering // of program.ClockMeter; nil for other clocks
	group      *group    // nil: intervals measure the thread that executes the actions
	oneIn      int64     // see program.Op
	// spread says that the timer keeps histograms.
	spread bool
}

func newTimer() *timer { return &timer{byThread: make(map[owner]*row)} }

// Clock implements service.Clocked.
func (t *timer) Clock() program.Clock { return t.clock }

// OneIn implements service.Sampled.
func (t *timer) OneIn() int64 { return t.oneIn }

// of returns the row of a thread. The caller holds mu.
func (t *timer) of(o owner) *row {
	r := t.byThread[o]
	if r == nil {
		r = &row{owner: o, sampler: sampler{oneIn: t.oneIn}, settable: !t.clock.IsTime()}
		if t.spread {
			r.counts = make([]uint64, program.Buckets)
		}
		t.byThread[o] = r
		t.feeds.hide()
		t.rows = append(t.rows, r)
	}
	return r
}

// goroutine identifies a goroutine of a process. A new goroutine may get the descriptor
// of an ended one: it begins at the upper end of its stack, which drops the intervals
// that the ended one left open.
type goroutine struct {
	proc omis.Token
	addr uint64
}

// stackOf returns the open intervals of the goroutine or thread that f belongs to. The
// caller holds mu.
func (t *timer) stackOf(r *row, f node.StackPlace) *stack {
	if f.Goroutine == 0 {
		return &r.stack
	}
	g := goroutine{r.proc, f.Goroutine}
	s := t.goroutines[g]
	if s == nil {
		if t.goroutines == nil {
			t.goroutines = make(map[goroutine]*stack)
		}
		s = new(stack)
		t.goroutines[g] = s
	}
	return s
}

func (t *timer) start(o owner, f node.StackPlace, now func() int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(o)
	r.start(t.stackOf(r, f), f.SP, now)
}

func (t *timer) stop(o owner, f node.StackPlace, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A stop without a start makes no row and no stack.
	switch r := t.byThread[o]; {
	case f.Goroutine != 0:
		if s := t.goroutines[goroutine{o.proc, f.Goroutine}]; s != nil && len(s.open) > 0 {
			t.of(o).stop(s, f.SP, at)
		}
	case r != nil:
		r.stop(&r.stack, f.SP, at)
	}
}

var _ service.Breaker = (*timer)(nil)

// Close closes the meters. They are opened again when they are needed.
func (t *timer) Close() error {
	if t.metering == nil {
		return nil
	}
	return t.metering.Close()
}

// BreakOff implements service.Breaker.
func (t *timer) BreakOff(proc omis.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var any *row
	for _, r := range t.rows {
		if r.proc != proc {
			continue
		}
		for any = r; len(r.open) > 0; {
			r.drop(&r.stack)
		}
	}
	// The threads on which these goroutines would have ended their intervals are unknown,
	// so any row counts them.
	for g, s := range t.goroutines {
		for any != nil && g.proc == proc && len(s.open) > 0 {
			any.drop(s)
		}
	}
}

// reset also discards the open intervals, so that everything measured afterwards began
// afterwards.
func (t *timer) reset() error {
	t.feeds.Lock()
	defer t.feeds.Unlock()
	err := errors.Join(t.feeds.reset(), t.Close()) // what meters show begins at 0, too
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byThread)
	clear(t.goroutines)
	t.rows = nil
	t.feeds.show(0)
	return err
}

func (t *timer) values(level int64) ([]omis.Value, error) { return t.rowValues(level, (*row).append) }

// widest is the greatest number of components in a row.
const widest = 11

// rowValues returns the rows, summed up to a level; add appends the components of a row.
func (t *timer) rowValues(level int64, add func(*row, []omis.Value) []omis.Value) ([]omis.Value, error) {
	t.feeds.Lock()
	defer t.feeds.Unlock()
	fed, err := t.feeds.rows()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return asValues(t.with(rowsOf(fed)), level, add), nil
}

// asValues sums rows up to a level and returns them as values.
func asValues(rows []*row, level int64, add func(*row, []omis.Value) []omis.Value) []omis.Value {
	if level != byThreads {
		rows = gather(rows, level, func(r *row) owner { return r.owner },
			func(o owner) *row { return &row{owner: o} }, (*row).join)
	}
	list := make([]omis.Value, 0, widest*len(rows))
	for _, r := range rows {
		list = add(r, list)
	}
	return []omis.Value{omis.Int(int64(len(rows))), omis.List(list...)}
}

// with returns the rows of the timer with the rows of stores added. The caller holds mu.
func (t *timer) with(fed []row) []*row {
	if len(fed) == 0 {
		return t.rows
	}
	all := newTimer()
	for _, r := range t.rows {
		all.of(r.owner).join(r)
	}
	all.take(fed)
	return all.rows
}

func (t *timer) take(fed []row) {
	for i := range fed {
		t.of(fed[i].owner).join(&fed[i])
	}
}

func rowsOf(fed []service.Row) []row {
	rows := make([]row, len(fed))
	for i := range fed {
		rows[i] = measured(&fed[i])
	}
	return rows
}

// measured converts a row of a store to a row of a timer.
func measured(fed *service.Row) row {
	i := &fed.Intervals
	return row{
		owner: owner{fed.Proc, fed.Thread},
		count: i.Count, unfinished: i.Unfinished, away: i.Open, skipped: i.Skipped, last: i.Last, min: i.Min, max: i.Max,
		sum: i.Sum, squares: i.Squares,
	}
}

// inStores implements measure.
func (t *timer) inStores() *shown { return t.feeds.shown.Load() }

func (*timer) appendFed(list []omis.Value, r *service.Row) []omis.Value {
	one := measured(r)
	return one.append(list)
}

func (t *timer) Kind() program.StoreKind {
	if t.spread {
		return program.StoreHistograms
	}
	return program.StoreIntervals
}

func (t *timer) Join(s service.Store) {
	t.feeds.Lock()
	defer t.feeds.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feeds.stores = append(t.feeds.stores, s)
	t.feeds.show(len(t.rows))
}

func (t *timer) Leave(s service.Store) error {
	t.feeds.Lock()
	defer t.feeds.Unlock()
	t.feeds.leave(s)
	fed, err := t.read(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(fed)
	t.feeds.show(len(t.rows))
	return err
}

// read returns the rows of a store; with an error, those that could be read.
func (t *timer) read(s service.Store) ([]row, error) {
	if t.spread {
		return histogramRows([]service.Store{s})
	}
	fed, err := s.Rows()
	return rowsOf(fed), err
}

// compileStart and compileStop compile pa_timer_start and pa_timer_stop to steps of a
// program.
func compileStart([]service.Argument) (program.Op, error) {
	return program.Op{Do: program.OpStart}, nil
}
func compileStop([]service.Argument) (program.Op, error) { return program.Op{Do: program.OpStop}, nil }

// compileBegin and compileEnd compile pa_timer_begin and pa_timer_end.
func compileBegin([]service.Argument) (program.Op, error) {
	return program.Op{Do: program.OpStart, Whole: true}, nil
}
func compileEnd([]service.Argument) (program.Op, error) {
	return program.Op{Do: program.OpStop, Whole: true}, nil
}

// timerServices returns the table rows of timers.
func timerServices() []service.Service {
	return []service.Service{
		{
			Name: "pa_timer_create", Action: createTimer, Class: classTimer, Result: "token",
			Doc: "make a timer and return its token; its clock is ordered",
		},
		{
			Name: "pa_timer_create2", Action: createTimer2, Class: classTimer, Result: "token", Params: []service.Param{service.StringParam("clock")},
			Doc: "make a timer and return its token. In the code of a program the clock ordered waits for preceding instructions; the clock fast does not wait, costs less, and has an error of some nanoseconds. The clock cpu measures the CPU time of the thread, in the kernel or by trap only. The other clocks measure at addresses and system calls what the kernel counts for the thread: " + taskClocks,
		},
		{
			Name: "pa_timer_create3", Action: createTimer3, Class: classTimer, Result: "token",
			Params: []service.Param{service.StringParam("clock"), service.IntegerParam("one_in")},
			Doc:    "make a timer as pa_timer_create2 does, which counts all intervals of a thread, but times only one of every one_in that follow each other, chosen at random. It times all intervals that begin with an event without a place in the code",
		},
		{
			Name: "pa_timer_create4", Action: createTimer4, Class: classTimer, Result: "token",
			Params: []service.Param{service.StringParam("clock"), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make a timer as pa_timer_create3 does; keep is \"sums\", or \"histogram\" for sums and a histogram of durations, which pa_timer_histogram and pa_timer_percentiles read",
		},
		{
			Name: "pa_timer_create5", Action: createTimer5, Class: classTimer, Result: "token",
			Params: []service.Param{service.StringParam("clock"), service.IntegerParam("one_in"), service.StringParam("keep"), service.TokensParam("thread_list", omis.ClassThread)},
			Doc:    "make a timer as pa_timer_create4 does, but an interval measures all live threads of thread_list, which may contain processes, whichever thread begins and ends it; [] means all threads of the process that executes it. The clock counts page faults, bytes, or what performance counters count; the monitor reads it while it holds the thread",
		},
		{
			Name: "pa_timer_delete", Action: remove, Class: classTimer, Object: classTimer, Params: []service.Param{timers()},
			Doc: "delete timers",
		},
		{
			Name: "pa_timer_reset", Action: resetTimer, Class: classTimer, Object: classTimer, Params: []service.Param{timers()},
			Doc: "delete all rows of timers, and discard the open intervals",
		},
		{
			Name: "pa_timer_start", Action: startTimer, Compile: compileStart, Class: classTimer, Object: classTimer, Params: []service.Param{timers()}, Local: true,
			Doc: "open an interval of the thread that the event belongs to",
		},
		{
			Name: "pa_timer_stop", Action: stopTimer, Compile: compileStop, Class: classTimer, Object: classTimer, Params: []service.Param{timers()}, Local: true,
			Doc: "close the interval that was opened with the same stack pointer",
		},
		{
			Name: "pa_timer_begin", Action: beginTimer, Compile: compileBegin, Class: classTimer, Object: classTimer, Params: []service.Param{timers()}, Local: true,
			Doc: "open an interval of the thread that the event belongs to, or of the goroutine, which pa_timer_end closes wherever on the stack. One that is open already counts as unfinished",
		},
		{
			Name: "pa_timer_end", Action: endTimer, Compile: compileEnd, Class: classTimer, Object: classTimer, Params: []service.Param{timers()}, Local: true,
			Doc: "close the interval that pa_timer_begin opened",
		},
		{
			Name: "pa_timer_read", Action: readTimer, Collect: collect, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers()}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; integer unfinished; }* threads; }",
			Doc:    "return the rows of timers, in seconds, of the timed intervals only. Threads that ended before a thousand others share one row, whose thread token names no thread",
		},
	}
}

func createTimer(c *service.Call) ([]omis.Value, error) {
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, newTimer()))}, nil
}

// clocks returns the clocks by their names in requests.
func clocks() map[string]program.Clock {
	return map[string]program.Clock{
		"ordered": program.ClockOrdered, "fast": program.ClockFast, "cpu": program.ClockCPU,
		"minor-faults": program.ClockMinorFaults, "major-faults": program.ClockMajorFaults,
		"voluntary-switches": program.ClockVoluntary, "involuntary-switches": program.ClockInvoluntary,
		"queued":     program.ClockQueued,
		"read-bytes": program.ClockRead, "write-bytes": program.ClockWritten,
		"disk-read-bytes": program.ClockDiskRead, "disk-write-bytes": program.ClockDiskWritten, "waiting": program.ClockWaiting,
		"page-faults": program.ClockFaults, "migrations": program.ClockMigrations,
	}
}

// taskClocks describes the clocks that are numbers of the kernel (program.Clock.IsOfTask).
const taskClocks = "minor-faults and major-faults (page faults without and with a wait for a disk), voluntary-switches and involuntary-switches (how often it gave up or lost its processor), queued (time for which it was ready and waited for a processor), waiting (time for which it was not ready), read-bytes and write-bytes (by system calls), disk-read-bytes and disk-write-bytes, page-faults (of both kinds) and migrations (how often it was moved to another processor). Only programs in the kernel read those of switches, times and migrations, because to hold the thread changes them. A clock such as " + meterPrefix + "instructions, with the name that the command perf uses, shows what the kernel's performance counters count in the thread alone: the monitor reads it while it holds the thread, and what the thread executes to be held is counted with it"

// clockOf returns the clock that a parameter selects.
func clockOf(v omis.Value) (program.Clock, error) {
	clock, ok := clocks()[v.Str]
	if strings.HasPrefix(v.Str, meterPrefix) {
		return program.ClockMeter, nil
	}
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "%q is not a clock; the clocks are %s", v.Str, strings.Join(slices.Sorted(maps.Keys(clocks())), ", "))
	}
	return clock, nil
}

func createTimer2(c *service.Call) ([]omis.Value, error) {
	clock, err := clockOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	t := newTimer()
	t.setClock(clock, c.Args[0].Str)
	return []omis.Value{omis.TokenValue(c.Scope.Add(classTimer, t))}, nil
}

func resetTimer(c *service.Call) ([]omis.Value, error) {
	return nil, c.Object.(*timer).reset()
}

// startTimer reads the clock as late as possible, to measure little of the monitor's own
// work; it subtracts the rest (Occurrence.After).
func startTimer(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil {
		return nil, noEvent()
	}
	t := c.Object.(*timer)
	if err := t.canTime(c.Event.At); err != nil {
		return nil, err
	}
	if t.group != nil {
		return nil, t.group.start(t, c.Event)
	}
	later := func() int64 { return c.Event.Now() + c.Event.After }
	if !t.clock.IsElapsed() {
		used, err := t.at(c.Event)
		if err != nil {
			return nil, err
		}
		later = func() int64 { return used }
	}
	t.start(owner{c.Event.Proc, c.Event.Thread}, c.Event.At, later)
	return nil, nil
}

// stopTimer takes the time at which the event was recognised, minus the cost up to that
// moment.
func stopTimer(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil {
		return nil, noEvent()
	}
	t := c.Object.(*timer)
	if err := t.canTime(c.Event.At); err != nil {
		return nil, err
	}
	if t.group != nil {
		return nil, t.group.stop(t, c.Event)
	}
	at := c.Event.Time - c.Event.Before
	if !t.clock.IsElapsed() {
		var err error
		if at, err = t.at(c.Event); err != nil {
			return nil, err
		}
	}
	who := owner{c.Event.Proc, c.Event.Thread}
	before, _ := t.latest(who)
	t.stop(who, c.Event.At, at)
	after, last := t.latest(who)
	c.Event.Measured, c.Event.Measures = last, after > before
	return nil, nil
}

// wholeStack is the stack pointer of intervals that belong to no place on the stack.
const wholeStack = 1

func beginTimer(c *service.Call) ([]omis.Value, error) { return anywhere(c, startTimer) }
func endTimer(c *service.Call) ([]omis.Value, error)   { return anywhere(c, stopTimer) }

// anywhere executes an action as if its event had happened at wholeStack.
func anywhere(c *service.Call, action func(*service.Call) ([]omis.Value, error)) ([]omis.Value, error) {
	if c.Event == nil {
		return nil, noEvent()
	}
	sp := c.Event.At.SP
	c.Event.At.SP = wholeStack
	defer func() { c.Event.At.SP = sp }()
	return action(c)
}

// canTime returns the reason why an interval cannot begin or end where an event happened.
func (t *timer) canTime(f node.StackPlace) error {
	switch {
	case f.Unknown != nil:
		return omis.Errorf(omis.UnsupportedService, "the timer must know the goroutine of a function in Go: %v", f.Unknown)
	case f.Goroutine != 0 && t.clock == program.ClockCPU:
		return program.NoGoroutineCPU()
	case f.Goroutine != 0 && !t.clock.IsElapsed():
		return program.NoGoroutineClock()
	}
	return nil
}

// at returns what a clock other than the elapsed time shows for the thread that is held.
func (t *timer) at(e *service.Occurrence) (int64, error) {
	switch t.clock {
	case program.ClockCPU:
		return cpuTime(e)
	case program.ClockMeter:
		return t.metering.reads(e, owner{e.Proc, e.Thread})
	}
	if t.clock.IsOfTask() {
		_, n, err := t.counted(e, e.Thread)
		return n, err
	}
	return t.reads(owner{e.Proc, e.Thread})
}

// cpuTime returns the CPU time of the thread that is held for an event. It includes what
// the thread itself does to stop and to continue: how much of that is CPU time is not
// measured.
func cpuTime(e *service.Occurrence) (int64, error) {
	if e.CPU == nil {
		return 0, omis.Errorf(omis.UnsupportedService, "the event belongs to no thread, so it has no CPU time")
	}
	return e.CPU()
}

// noEvent returns the error for a timer in an unconditional request: a timer uses the
// clock of events.
func noEvent() error {
	return omis.Errorf(omis.ParameterError, "only events can start and stop a timer: use a conditional request, such as one with thread_reached_addr")
}

func readTimer(c *service.Call) ([]omis.Value, error) {
	return c.Object.(*timer).values(byThreads)
}
