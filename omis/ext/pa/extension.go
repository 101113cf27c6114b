package pa

import (
	"io"
	"slices"

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
	classMeter       omis.Class = "pa_m"
)

// blockedOnIO is an event of this extension because OMIS 8 has only one event for all
// kinds of blocking.
const blockedOnIO = "pa_thread_has_blocked_on_io"

// reachedIf is an event of this extension: OMIS has no events at which a jump is taken.
const reachedIf = "pa_thread_reached_addr_if"

// Extension implements the services of this package.
type Extension struct{}

// New returns the extension.
func New() *Extension { return &Extension{} }

var _ service.Extension = (*Extension)(nil)

func (*Extension) Prefix() string { return "pa" }

func (*Extension) Classes() []service.Class {
	return []service.Class{{Class: classCounter}, {Class: classTimer}, {Class: classIntegrator}, {Class: classCombination}, {Class: classTrace}, {Class: classMeter}}
}

// Services returns the table of the extension. Integrators have no Compile, because they add
// floating point numbers: programs in the kernel cannot do that.
func (*Extension) Services() []service.Service {
	list := slices.Concat(
		counterServices(), timerServices(), integratorServices(), combinationServices(), traceServices(),
		sumServices(), sampleServices(), histogramServices(), sourceServices(), instantServices(), meterServices(), eventServices(),
	)
	for i := range list {
		s := &list[i]
		if s.Kind == 0 {
			s.Kind, s.Role = service.Manipulation, service.Control
		}
		s.Need, s.Support = service.Optional, service.Support{Level: service.Full}
		s.Linux = how(s)
	}
	return list
}

func counters() service.Param { return service.TokensParam("counter_list", classCounter) }
func timers() service.Param   { return service.TokensParam("timer_list", classTimer) }

// how describes how a service works; it is the same on any system.
func how(s *service.Service) string {
	switch {
	case s.Name == blockedOnIO:
		return "as `thread_has_blocked`, if the kernel accounts the wait as input or output (`iowait`)"
	case s.Name == reachedIf:
		return "as `thread_reached_addr`. The condition is the number that it has in the processor's conditional jumps: 0 overflow, 2 below, 4 equal, 6 below or equal, 8 negative, 10 parity, 12 less, 14 less or equal; 1 more is the opposite"
	case s.Kind == service.Event:
		return "by the monitor's clock; no thread is held"
	case s.Class == classMeter:
		return "by perf_event_open for each thread, with inheritance by the threads that it creates; the descriptors belong to the monitor"
	case s.Local && s.Class == classIntegrator:
		return "on the monitor's thread that owns the process, while the thread is held"
	case s.Local:
		return "inline, in the kernel, or on the monitor's thread that owns the process, while the thread is held"
	}
	return "in the monitor's memory"
}

// eventServices returns the table rows of the events.
func eventServices() []service.Service {
	return []service.Service{
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
		{
			Name: reachedIf, Event: node.EventReachedAddr, Class: omis.ClassThread, Kind: service.Event, Object: omis.ClassThread, Role: service.Control,
			Params: []service.Param{service.TokensParam("thread_list", omis.ClassThread), service.IntegerParam("address"), service.IntegerParam("condition")},
			Doc:    "a thread is about to execute the instruction at an address, while the flags fulfil a condition; at a conditional jump, it is about to jump, or not to jump",
		},
	}
}

func remove(c *service.Call) (_ []omis.Value, err error) {
	if open, ok := c.Object.(io.Closer); ok {
		err = open.Close()
	}
	c.Scope.Remove(c.Token)
	return nil, err
}

// origin returns the process and the thread of an event; both are undefined in an
// unconditional request.
func origin(e *service.Occurrence) (proc, thread omis.Token) {
	if e == nil {
		return omis.Undefined, omis.Undefined
	}
	return e.Proc, e.Thread
}
