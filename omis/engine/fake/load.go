package fake

import (
	"mirador/omis/node"
	"mirador/omis/program"
)

// Load implements program.Loader. Arguments of system calls are unsigned integers of 64 bits,
// results are signed ones.
func (n *Node) Load(w node.Watch, param int) (program.Load, error) {
	switch {
	case w.Event == node.EventReachedAddr:
		return program.ArgumentAt(param), nil
	case w.Event == node.EventSysCallEnded && param == 0:
		return program.Load{From: program.FromResult, Bytes: 8, Signed: true}, nil
	case w.Event == node.EventSysCallEnded:
		param--
	case w.Event != node.EventSysCallStarted:
		return program.Load{}, &program.Refusal{Why: "it is of no system call and no function"}
	}
	return program.Load{From: program.FromArgument, Arg: uint8(param), Bytes: 8}, nil
}

// value returns the value of a step for a hit, and whether it fits into an int64.
func value(op program.Op, event node.EventKind, h *node.Hit) (v int64, fits bool) {
	l := op.Load
	if !l.IsLoaded() || l.From == program.FromStack || l.From == program.FromStep {
		return op.Value, true
	}
	if event == node.EventReachedAddr {
		return l.OfCall(h.Args)
	}
	i := int(l.Arg)
	if l.From == program.FromArgument && event == node.EventSysCallEnded {
		i++ // Params[0] is the result
	}
	register, _ := h.Params[i].Uint64()
	return l.Of(register)
}
