//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/linux/calls"
	"mirador/omis/linux/proc"
)

// callNumber is the number of the system call that a watch names, -1 for all.
func callNumber(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	c, ok := calls.ByName(name)
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "there is no system call %s", name)
	}
	return c.Number, nil
}

// callParams are the parameters of the event of a system call.
func (o *owner) callParams(kind omis.EventKind, t *thread, result int64) []omis.Value {
	c := calls.ByNumber(uint64(t.call.number))
	memory := func(buf []byte, addr uint64) (int, error) { return proc.ReadMemory(o.proc.PID, addr, buf) }
	if kind == omis.EventSysCallStarted {
		return c.Started(t.call.args, memory)
	}
	return c.Ended(t.call.args, uint64(result), memory)
}
