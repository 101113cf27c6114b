//go:build linux && amd64

package linux

import (
	"mirador/omis/host/calls"
	"mirador/omis/host/prototype"
	"mirador/omis/node"
	"mirador/omis/program"
)

var _ program.Loader = (*Node)(nil)

// Load: see program.Loader.
func (*Node) Load(w node.Watch, param int) (program.Load, error) {
	if w.Event == node.EventReachedAddr {
		return program.ArgumentAt(param), nil
	}
	if !isSystemCall(w.Event) {
		return program.Load{}, &program.Refusal{Why: "only the monitor can read it at this event"}
	}
	if w.Name == "" {
		return program.Load{}, &program.Refusal{Why: "its meaning depends on the system call: name one"}
	}
	name, _ := calls.Split(w.Name)
	c, ok := calls.ByName(name)
	if !ok {
		return program.Load{}, calls.Unknown(w.Name)
	}
	if w.Event == node.EventSysCallStarted {
		return loadArgument(c, param)
	}
	switch param {
	case 0:
		return loadResult(c)
	case 1:
		return program.Load{From: program.FromError, Bytes: 8, Signed: true}, nil
	}
	if c.Name == "execve" || c.Name == "execveat" {
		return program.Load{}, &program.Refusal{Why: "the registers with the arguments are those of the new program by then"}
	}
	if calls.HasMessages(c.Name) && param-2 == len(c.Params) {
		return program.Load{From: program.FromMessages, Bytes: 8, Signed: true}, nil
	}
	return loadArgument(c, param-2)
}

func loadResult(c *calls.Call) (program.Load, error) {
	if c.Result.Kind != prototype.Integer {
		return program.Load{}, &program.Refusal{Why: "the result of " + c.Name + " is no integer"}
	}
	return program.Load{From: program.FromResult, Bytes: uint8(c.Result.Size), Signed: c.Result.Signed}, nil
}

func loadArgument(c *calls.Call, i int) (program.Load, error) {
	if i >= len(c.Params) {
		return program.Load{}, &program.Refusal{Why: c.Name + " has no such argument"}
	}
	p := &c.Params[i]
	l := program.Load{From: program.FromArgument, Arg: uint8(i), Bytes: uint8(p.Type.Size), Signed: p.Type.Signed}
	switch {
	case p.Type.Kind == prototype.Integer:
		return l, nil
	case p.Type.Kind == prototype.Pointer && p.Direction == 0:
		return l, nil
	}
	return program.Load{}, &program.Refusal{Why: p.Name + " of " + c.Name + " is not an integer, or is in the memory of the program"}
}
