package pa

import (
	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Records of executions: what an action measures in one occurrence of an event, and where the
// event happened on the stack.

// latest returns the number of intervals of a thread, and the last one.
func (t *timer) latest(o owner) (count, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byThread[o]; r != nil {
		return r.count, int64(r.last)
	}
	return 0, 0
}

// compileLast compiles pa_trace_last, compileStack pa_trace_stack to steps of a program.
func compileLast(args []service.Argument) (program.Op, error) {
	return compileFrom(program.FromStep, args)
}

func compileStack(args []service.Argument) (program.Op, error) {
	return compileFrom(program.FromStack, args)
}

func compileFrom(origin program.Origin, args []service.Argument) (program.Op, error) {
	op, err := compileTrace(args)
	op.Load = program.Load{From: origin, Bytes: 8, Signed: true}
	return op, err
}

func addLast(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil || !c.Event.Measures {
		_, err := markOf(c.Args[1])
		return nil, err
	}
	return addRecord(c, c.Event.Measured)
}

func addStack(c *service.Call) ([]omis.Value, error) {
	if c.Event == nil {
		return addRecord(c, 0)
	}
	at := c.Event.At
	if at.Unknown != nil {
		return nil, omis.Errorf(omis.UnsupportedService, "the goroutine of a function in Go must be known: %v", at.Unknown)
	}
	if at.Goroutine != 0 {
		mark, err := markOf(c.Args[1])
		if err != nil {
			return nil, err
		}
		addMarked(c, program.MarkOfGoroutine(mark), int64(at.Goroutine))
	}
	return addRecord(c, int64(at.SP))
}

// compileGroup always refuses, as only the monitor measures groups.
func compileGroup([]service.Argument) (program.Op, error) {
	return program.Op{}, &program.Refusal{Why: "pa_trace_group cannot be done outside of the monitor"}
}

// addGroup appends all records to those of the thread that the event belongs to, which keeps them together.
func addGroup(c *service.Call) ([]omis.Value, error) {
	groupMark, err := markOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	mark, err := markOf(c.Args[2])
	if err != nil || c.Event == nil || len(c.Event.Group) == 0 {
		return nil, err
	}
	e, t := c.Event, c.Object.(*trace)
	by := owner{e.Proc, e.Thread}
	add := func(of owner, mark int32, value int64) {
		t.add(by, service.Record{Proc: of.proc, Thread: of.thread, Record: program.Record{Time: e.Time, Mark: mark, Value: value}})
	}
	add(by, groupMark, int64(len(e.Group)))
	for _, m := range e.Group {
		add(owner{m.Proc, m.Thread}, mark, m.Value)
	}
	return nil, nil
}
