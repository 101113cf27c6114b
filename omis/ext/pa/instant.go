package pa

import (
	"maps"
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
)

// A timer can also keep the values that a level of a process, such as the number of its threads, had at
// instants. The monitor reads the level while it holds the thread.

// processLevel is a level of a process: a component of proc_get_info.
type processLevel struct {
	field node.ProcFields
	of    func(*node.ProcInfo) int64
}

func processLevels() map[string]processLevel {
	return map[string]processLevel{
		"heap":         {node.ProcHeap, func(i *node.ProcInfo) int64 { return i.Heap }},
		"non-heap":     {node.ProcNonHeap, func(i *node.ProcInfo) int64 { return i.NonHeap }},
		"resident":     {node.ProcResidentSize, func(i *node.ProcInfo) int64 { return i.ResidentSize }},
		"resident-max": {node.ProcMaxResidentSize, func(i *node.ProcInfo) int64 { return i.MaxResidentSize }},
		"virtual":      {node.ProcMemorySize, func(i *node.ProcInfo) int64 { return i.MemorySize }},
	}
}

// threadsLevel is the level that is no component of proc_get_info: the number of live threads.
const threadsLevel = "threads"

// instantServices returns the table row of the service that measures levels.
func instantServices() []service.Service {
	return []service.Service{{
		Name: "pa_timer_take_level", Action: takeLevel, Compile: compileLevel, Class: classTimer, Object: classTimer, Local: true,
		Params: []service.Param{timers(), service.StringParam("level")},
		Doc:    "measure a level of the process at this instant, as if it were the length of an interval: " + levelNames() + ". The sizes are in bytes, as proc_get_info has them; threads is the number of live threads. Where a service returns seconds, one of the level is a billionth; pa_timer_exact returns whole numbers",
	}}
}

func levelNames() string {
	return strings.Join(slices.Sorted(maps.Keys(processLevels())), ", ") + " or " + threadsLevel
}

// compileLevel always refuses. If the action had no Compile, the engine would assume that it changes no
// cell, and would not record that values of the timer are in the monitor's memory.
func compileLevel([]service.Argument) (program.Op, error) {
	return program.Op{}, &program.Refusal{Why: "pa_timer_take_level cannot be done outside of the monitor"}
}

func takeLevel(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil {
		return nil, noEvent()
	}
	v, err := levelAt(c.Event, c.Args[1].Str)
	if err != nil {
		return nil, err
	}
	t := c.Object.(*timer)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(owner{c.Event.Proc, c.Event.Thread}).measured(uint64(v))
	c.Event.Measured, c.Event.Measures = v, true
	return nil, nil
}

// levelAt reads a level of the process of an event.
func levelAt(e *service.Occurrence, name string) (int64, error) {
	if name == threadsLevel && e.Threads != nil {
		return int64(len(e.Threads(e.Proc))), nil
	}
	level, known := processLevels()[name]
	switch {
	case !known:
		return 0, omis.Errorf(omis.ParameterError, "%q is not a level; the levels are %s", name, levelNames())
	case e.Info == nil:
		return 0, omis.Errorf(omis.UnsupportedService, "the event belongs to no process")
	}
	info, err := e.Info(level.field)
	if err != nil {
		return 0, err
	}
	v := level.of(&info)
	if v < 0 {
		return 0, omis.Errorf(omis.UnsupportedService, "this machine does not have the level %q of a process", name)
	}
	return v, nil
}
