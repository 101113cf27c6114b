//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/prototype"
)

var _ omis.Loader = (*Node)(nil)

// Load: see omis.Loader.
func (*Node) Load(w omis.Watch, param int) (omis.Load, error) {
	if w.Event == omis.EventReachedAddr {
		return omis.ArgumentAt(param), nil
	}
	if !isSystemCall(w.Event) {
		return omis.Load{}, &omis.Refusal{Why: "only the monitor can tell it of this event"}
	}
	if w.Name == "" {
		return omis.Load{}, &omis.Refusal{Why: "what it is depends on the system call: name one"}
	}
	name, _ := calls.Split(w.Name)
	c, ok := calls.ByName(name)
	if !ok {
		return omis.Load{}, omis.Errorf(omis.ParameterError, "there is no system call %s", w.Name)
	}
	if w.Event == omis.EventSysCallStarted {
		return loadArgument(c, param)
	}
	switch param {
	case 0:
		return loadResult(c)
	case 1:
		return omis.Load{From: omis.FromError, Bytes: 8, Signed: true}, nil
	}
	if c.Name == "execve" || c.Name == "execveat" {
		return omis.Load{}, &omis.Refusal{Why: "the registers with the arguments are those of the new program by then"}
	}
	return loadArgument(c, param-2)
}

func loadResult(c *calls.Call) (omis.Load, error) {
	if c.Result.Kind != prototype.Integer {
		return omis.Load{}, &omis.Refusal{Why: "the result of " + c.Name + " is no integer"}
	}
	return omis.Load{From: omis.FromResult, Bytes: uint8(c.Result.Size), Signed: c.Result.Signed}, nil
}

func loadArgument(c *calls.Call, i int) (omis.Load, error) {
	if i >= len(c.Params) {
		return omis.Load{}, &omis.Refusal{Why: c.Name + " has no such argument"}
	}
	p := &c.Params[i]
	l := omis.Load{From: omis.FromArgument, Arg: uint8(i), Bytes: uint8(p.Type.Size), Signed: p.Type.Signed}
	switch {
	case p.Type.Kind == prototype.Integer:
		return l, nil
	case p.Type.Kind == prototype.Pointer && p.Direction == 0:
		return l, nil
	}
	return omis.Load{}, &omis.Refusal{Why: p.Name + " of " + c.Name + " is no integer, or stands in the memory of the program"}
}
