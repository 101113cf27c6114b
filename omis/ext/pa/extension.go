package pa

import (
	"mirador/omis"
	"mirador/omis/node"
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

var _ service.Extension = (*Extension)(nil)

func (*Extension) Prefix() string { return "pa" }

func (*Extension) Classes() []service.Class {
	return []service.Class{{Class: classCounter}, {Class: classTimer}, {Class: classIntegrator}, {Class: classCombination}, {Class: classTrace}}
}

// Services returns the table of the extension. Integrators have no Compile: they add floating
// point numbers, which the kernel cannot do.
func (*Extension) Services() []service.Service {
	counters := service.TokensParam("counter_list", classCounter)
	timers := service.TokensParam("timer_list", classTimer)
	list := []service.Service{
		{
			Name: "pa_counter_create", Action: createCounter, Class: classCounter, Result: "token",
			Doc: "make a counter and return its token",
		},
		{
			Name: "pa_counter_delete", Action: remove, Class: classCounter, Object: classCounter, Params: []service.Param{counters},
			Doc: "delete counters",
		},
		{
			Name: "pa_counter_reset", Action: resetCounter, Class: classCounter, Object: classCounter, Params: []service.Param{counters},
			Doc: "delete all rows of counters",
		},
		{
			Name: "pa_counter_add", Action: addToCounter, Compile: compileAdd, Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters, service.IntegerParam("value")},
			Doc:    "add a value to counters, in the row of the thread that the event belongs to",
		},
		{
			Name: "pa_counter_add_amount", Action: addAmountToCounter, Compile: compileAmount, Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters, service.IntegerParam("value")},
			Doc:    "add a value to counters as pa_counter_add does, but 0 if the value is negative, such as the result of a call that failed",
		},
		{
			Name: "pa_timer_create", Action: createTimer, Class: classTimer, Result: "token",
			Doc: "make a timer and return its token; its clock is ordered",
		},
		{
			Name: "pa_timer_create2", Action: createTimer2, Class: classTimer, Result: "token", Params: []service.Param{service.StringParam("clock")},
			Doc: "make a timer and return its token. In the code of a program the clock ordered waits for preceding instructions; the clock fast does not wait, costs less, and has an error of some nanoseconds. The clock cpu measures the CPU time of the thread, in the kernel or by trap only",
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
			Name: "pa_timer_delete", Action: remove, Class: classTimer, Object: classTimer, Params: []service.Param{timers},
			Doc: "delete timers",
		},
		{
			Name: "pa_timer_reset", Action: resetTimer, Class: classTimer, Object: classTimer, Params: []service.Param{timers},
			Doc: "delete all rows of timers, and discard the open intervals",
		},
		{
			Name: "pa_timer_start", Action: startTimer, Compile: compileStart, Class: classTimer, Object: classTimer, Params: []service.Param{timers}, Local: true,
			Doc: "open an interval of the thread that the event belongs to",
		},
		{
			Name: "pa_timer_stop", Action: stopTimer, Compile: compileStop, Class: classTimer, Object: classTimer, Params: []service.Param{timers}, Local: true,
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
		return "as `thread_has_blocked`, if the kernel accounts the wait as input or output (`iowait`)"
	case s.Kind == service.Event:
		return "by the monitor's clock; no thread is held"
	case s.Local && s.Class == classIntegrator:
		return "on the monitor's thread that owns the process, while the thread is held"
	case s.Local:
		return "inline, in the kernel, or on the monitor's thread that owns the process, while the thread is held"
	}
	return "in the monitor's memory"
}

// readers returns the table rows of the services that only read, and of the events.
func readers(counters, timers service.Param) []service.Service {
	return []service.Service{
		{
			Name: "pa_counter_read", Action: readCounter, Collect: collect, Class: classCounter, Kind: service.Information, Object: classCounter,
			Params: []service.Param{counters}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer value; }* threads; }",
			Doc:    "return the rows of counters. Threads that ended before a thousand others share one row, whose thread token names no thread",
		},
		{
			Name: "pa_timer_read", Action: readTimer, Collect: collect, Class: classTimer, Kind: service.Information, Object: classTimer,
			Params: []service.Param{timers}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; integer unfinished; }* threads; }",
			Doc:    "return the rows of timers, in seconds, of the timed intervals only. Threads that ended before a thousand others share one row, whose thread token names no thread",
		},
		{
			Name: "pa_integrator_read", Action: readIntegrator, Class: classIntegrator, Kind: service.Information, Object: classIntegrator,
			Params: []service.Param{service.TokensParam("integrator_list", classIntegrator), service.IntegerParam("level")}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; }* rows; }",
			Doc:    "return the rows of integrators by threads (level 0), by processes (1) or in total (2)",
		},
		{
			Name: "pa_interval_elapsed", Source: intervals, Kind: service.Event, Role: service.Control,
			Params: []service.Param{service.IntegerParam("ms")},
			Doc:    "a number of milliseconds has passed since the last occurrence, or since the request was enabled",
		},
		{
			Name: blockedOnIO, Event: node.EventBlockedOnIO, Class: omis.ClassThread, Kind: service.Event, Object: omis.ClassThread, Role: service.Control,
			Params: []service.Param{service.TokensParam("thread_list", omis.ClassThread)},
			Doc:    "a thread has blocked to wait for a disk; thread_has_blocked occurs as well",
		},
	}
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
