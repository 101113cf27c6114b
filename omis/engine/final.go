package engine

import (
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
)

// heldAtExit is added to the placement of a request whose list queriesAtEnd.
const heldAtExit = "; the process is held at its exit until the list is done"

// queriesAtEnd reports whether the list of a request reads anything of the process whose end is its event.
// Only then the process is held at its exit, because it must be traced for that.
func (c *csr) queriesAtEnd(p *process) bool {
	return c.event.source.kind == node.EventProcTerminated &&
		slices.ContainsFunc(c.steps, func(s step) bool { return s.queries(c.tool, p) })
}

// queries reports whether a step may read anything of a process.
func (s *step) queries(t *Tool, p *process) bool {
	class := s.service.Object
	if s.subject < 0 || s.service.Kind != service.Information || class != omis.ClassProcess && class != omis.ClassThread {
		return false
	}
	list := s.args[s.subject].List
	if s.args[s.subject].Kind != omis.KindList {
		list = s.args[s.subject : s.subject+1]
	}
	return len(list) == 0 || slices.ContainsFunc(list, func(v omis.Value) bool {
		if v.Kind != omis.KindToken {
			return true // an event context parameter
		}
		switch o, _ := t.find(v.Token()); o := o.(type) {
		case *process:
			return o == p
		case *thread:
			return o.proc == p
		}
		return true
	})
}
