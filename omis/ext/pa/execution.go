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
	var sp uint64
	if c.Event != nil {
		sp = c.Event.At.SP
	}
	return addRecord(c, int64(sp))
}
