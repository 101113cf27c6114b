package pa

import (
	"mirador/omis"
	"mirador/omis/service"
)

// Classes of tokens.
const (
	classCounter     omis.Class = "pa_c"
	classTimer       omis.Class = "pa_t"
	classIntegrator  omis.Class = "pa_i"
	classCombination omis.Class = "pa_k"
	classTrace       omis.Class = "pa_b"
)

// blockedOnIO is an event of this extension because OMIS 8 has only one event for all
// kinds of blocking.
const blockedOnIO = "pa_thread_has_blocked_on_io"

// Extension implements the services of this package.
type Extension struct{}

// New returns the extension.
func New() *Extension { return &Extension{} }

var (
	_ service.Compiler  = (*Extension)(nil)
	_ service.Collector = (*Extension)(nil)
	_ service.Detector  = (*Extension)(nil)
)

func (*Extension) Prefix() string { return "pa" }

func (*Extension) Classes() []service.Class {
	return []service.Class{{Class: classCounter}, {Class: classTimer}, {Class: classIntegrator}, {Class: classCombination}, {Class: classTrace}}
}

// Services returns the table of the extension.
func (*Extension) Services() []service.Service {
	counters := service.TokensParam("counter_list", classCounter)
	timers := service.TokensParam("timer_list", classTimer)
	list := []service.Service{
		{
			Name: "pa_counter_create", Class: classCounter, Result: "token",
			Doc: "make a counter and return its token",
		},
		{
			Name: "pa_counter_delete", Class: classCounter, Object: classCounter, Params: []service.Param{counters},
			Doc: "delete counters",
		},
		{
			Name: "pa_counter_reset", Class: classCounter, Object: classCounter, Params: []service.Param{counters},
			Doc: "forget all rows of counters",
		},
		{
			Name: "pa_counter_add", Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters, service.IntegerParam("value")},
			Doc:    "add a value to counters, in the row of the thread that the event belongs to",
		},
		{
			Name: "pa_counter_add_amount", Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters, service.IntegerParam("value")},
			Doc:    "add a value to counters as pa_counter_add does, but nothing where it is negative, such as the result of a call that has failed",
		},
		{
			Name: "pa_timer_create", Class: classTimer, Result: "token",
			Doc: "make a timer and return its token; its clock is ordered",
		},
		{
			Name: "pa_timer_create2", Class: classTimer, Result: "token", Params: []service.Param{service.StringParam("clock")},
			Doc: "make a timer and return its token; where it is started and stopped in the code of a program, it takes the time by an ordered clock, which waits for what went before, or by a fast one, which costs less and is uncertain by some nanoseconds; by the clock cpu it takes the CPU time of the thread, wherever that can be had, and never in the code of the program",
		},
		{
			Name: "pa_timer_create3", Class: classTimer, Result: "token",
			Params: []service.Param{service.StringParam("clock"), service.IntegerParam("one_in")},
			Doc:    "make a timer as pa_timer_create2 does, which counts all intervals of a thread, but times only one of every so many: of those that follow each other one, by lot. Intervals that events without a place in the code begin are all timed",
		},
		{
			Name: "pa_timer_create4", Class: classTimer, Result: "token",
			Params: []service.Param{service.StringParam("clock"), service.IntegerParam("one_in"), service.StringParam("keep")},
			Doc:    "make a timer as pa_timer_create3 does, which keeps sums, or a histogram beside them: how many intervals took how long, for pa_timer_histogram and pa_timer_percentiles",
		},
		{
			Name: "pa_timer_delete", Class: classTimer, Object: classTimer, Params: []service.Param{timers},
			Doc: "delete timers",
		},
		{
			Name: "pa_timer_reset", Class: classTimer, Object: classTimer, Params: []service.Param{timers},
			Doc: "forget all rows of timers, and the intervals that are open",
		},
		{
			Name: "pa_timer_start", Class: classTimer, Object: classTimer, Params: []service.Param{timers}, Local: true,
			Doc: "open an interval of the thread that the event belongs to",
		},
		{
			Name: "pa_timer_stop", Class: classTimer, Object: classTimer, Params: []service.Param{timers}, Local: true,
			Doc: "close the interval that was opened with the same stack pointer",
		},
	}
	list = append(list, integratorServices()...)
	list = append(list, combinationServices()...)
	list = append(list, traceServices()...)
	for i := range list {
		list[i].Kind, list[i].Role = service.Manipulation, service.Control
	}
	list = append(list, readers(counters, timers)...)
	list = append(list, sumServices(counters, timers)...)
	list = append(list, sampleServices(timers)...)
	list = append(list, histogramServices(timers)...)
	for i := range list {
		list[i].Need, list[i].Support = service.Optional, service.Support{Level: service.Full}
		list[i].Linux = how(&list[i])
	}
	return list
}

// how describes how a service works; it is the same on any system.
func how(s *service.Service) string {
	switch {
	case s.Name == blockedOnIO:
		return "as `thread_has_blocked`, where the kernel itself calls it waiting for input or output: its `iowait`"
	case s.Kind == service.Event:
		return "by the clock of the monitor; nobody is held"
	case s.Local && s.Class == classTrace:
		return "in code of ours in the program, in the kernel, or on the thread of the monitor that owns the process, while the thread is held"
	case s.Local:
		return "in the kernel, at a uprobe, or on the thread of the monitor that owns the process, while the thread is held"
	}
	return "in the monitor's memory"
}

// readers returns the table rows of the services that only read, and of the events.
func readers(counters, timers service.Param) []service.Service {
	return []service.Service{
		{
			Name: "pa_counter_read", Class: classCounter, Kind: service.Information, Object: classCounter,
			Params: []service.Param{counters}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer value; }* threads; }",
			Doc:    "return the rows of counters; of threads that ended before a thousand others there is one for all, whose thread token names none",
		},
		{
			Name: "pa_timer_read", Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; integer unfinished; }* threads; }",
			Doc:    "return the rows of timers, in seconds; where only some intervals are timed, these; of threads that ended before a thousand others there is one for all, whose thread token names none",
		},
		{
			Name: "pa_integrator_read", Class: classIntegrator, Kind: service.Information, Object: classIntegrator,
			Params: []service.Param{service.TokensParam("integrator_list", classIntegrator), service.IntegerParam("level")}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; }* rows; }",
			Doc:    "return what integrators know by threads (level 0), by processes (1) or in total (2)",
		},
		{
			Name: "pa_interval_elapsed", Kind: service.Event, Role: service.Control,
			Params: []service.Param{service.IntegerParam("ms")},
			Doc:    "a number of milliseconds has gone by since the last time, or since the request was enabled",
		},
		{
			Name: blockedOnIO, Class: omis.ClassThread, Kind: service.Event, Object: omis.ClassThread, Role: service.Control,
			Params: []service.Param{service.TokensParam("thread_list", omis.ClassThread)},
			Doc:    "a thread has blocked until a disk has done something; thread_has_blocked occurs as well",
		},
	}
}

// Actions returns the implementations by the names of the services.
func (*Extension) Actions() map[string]service.Action {
	return map[string]service.Action{
		"pa_counter_create": createCounter,
		"pa_counter_delete": remove,
		"pa_counter_reset":  resetCounter,
		"pa_counter_add":    addToCounter,
		"pa_counter_read":   readCounter,
		"pa_counter_sum":    sumCounter,
		"pa_timer_create":   createTimer,

		"pa_counter_add_amount": addAmountToCounter,

		"pa_timer_create2":  createTimer2,
		"pa_timer_create3":  createTimer3,
		"pa_timer_create4":  createTimer4,
		"pa_timer_delete":   remove,
		"pa_timer_reset":    resetTimer,
		"pa_timer_start":    startTimer,
		"pa_timer_stop":     stopTimer,
		"pa_timer_read":     readTimer,
		"pa_timer_sum":      sumTimer,
		"pa_timer_estimate": estimateTimer,

		"pa_timer_histogram":   histogramOfTimer,
		"pa_timer_percentiles": percentilesOfTimer,

		"pa_integrator_create": createIntegrator,
		"pa_integrator_delete": remove,
		"pa_integrator_reset":  resetIntegrator,
		"pa_integrator_add":    addToIntegrator,
		"pa_integrator_read":   readIntegrator,

		"pa_trace_create": createTrace,
		"pa_trace_delete": remove,
		"pa_trace_reset":  resetTrace,
		"pa_trace_add":    addToTrace,
		"pa_trace_add2":   addToTrace,
		"pa_trace_read":   readTrace,

		"pa_filter":             filter,
		"pa_and_create":         createAnd,
		"pa_sequence_create":    createSequence,
		"pa_count_create":       createCount,
		"pa_combination_signal": signal,
		"pa_combination_reset":  resetCombination,
		"pa_combination_delete": remove,
	}
}

// Collectors returns the actions that can handle many objects at once.
func (*Extension) Collectors() map[string]service.Collect {
	return map[string]service.Collect{"pa_counter_read": collect, "pa_timer_read": collect}
}

// Compilers returns the actions that can be steps of programs. Integrators are missing:
// they add floating point numbers, which the kernel cannot do.
func (*Extension) Compilers() map[string]service.Compile {
	return map[string]service.Compile{
		"pa_counter_add":        compileAdd,
		"pa_counter_add_amount": compileAmount,
		"pa_timer_start":        compileStart,
		"pa_timer_stop":         compileStop,
		"pa_trace_add":          compileTrace,
		"pa_trace_add2":         compileTrace,
	}
}

// Kinds returns the events that nodes detect.
func (*Extension) Kinds() map[string]omis.EventKind {
	return map[string]omis.EventKind{blockedOnIO: omis.EventBlockedOnIO}
}

// Sources returns the implementations of the other events.
func (*Extension) Sources() map[string]service.Source {
	return map[string]service.Source{"pa_interval_elapsed": intervals}
}

func remove(c *service.Call) ([]omis.Value, error) {
	c.Scope.Remove(c.Token)
	return nil, nil
}

// origin returns the process and the thread of an event; both are undefined in an
// unconditional request.
func origin(e *service.Occurrence) (proc, thread omis.Token) {
	if e == nil {
		return omis.Undefined, omis.Undefined
	}
	return e.Proc, e.Thread
}
