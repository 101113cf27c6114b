package fake

import "mirador/omis"

var _ omis.Loader = (*Node)(nil)

// Load: see omis.Loader. All arguments of system calls are integers of 64 bits without a sign,
// and all results ones with a sign.
func (n *Node) Load(w omis.Watch, param int) (omis.Load, error) {
	switch {
	case w.Event == omis.EventReachedAddr:
		return omis.ArgumentAt(param), nil
	case w.Event == omis.EventSysCallEnded && param == 0:
		return omis.Load{From: omis.FromResult, Bytes: 8, Signed: true}, nil
	case w.Event == omis.EventSysCallEnded:
		param--
	case w.Event != omis.EventSysCallStarted:
		return omis.Load{}, &omis.Refusal{Why: "it is of no system call and no function"}
	}
	return omis.Load{From: omis.FromArgument, Arg: uint8(param), Bytes: 8}, nil
}

// value is that of a step at a hit of an event.
func value(op omis.Op, event omis.EventKind, h *omis.Hit) (v int64, fits bool) {
	l := op.Load
	if !l.IsLoaded() {
		return op.Value, true
	}
	i := int(l.Arg)
	if event == omis.EventReachedAddr {
		return l.Of(h.Args[i])
	}
	if l.From == omis.FromArgument && event == omis.EventSysCallEnded {
		i++ // behind the result
	}
	register, _ := h.Params[i].Uint64()
	return l.Of(register)
}
