package placing

import (
	"mirador/omis"
	"mirador/omis/program"
)

// because adds to a placement why nothing is cheaper.
func because(p omis.Placement, why string) omis.Placement {
	if p.Local && why != "" {
		p.Why += "; nothing is cheaper: " + why
	}
	return p
}

// cautious adds to the placement of a request that measures time by holding threads that short times are
// unreliable.
func cautious(p omis.Placement, c *Request) omis.Placement {
	if p.Name == omis.Trap && c.Times {
		p.Why += "; what it costs to hold the thread is taken off its times only as far as that is always the same: those below 100 µs mean little"
	}
	return p
}

// Declined makes the error that a request cannot be a program.
func Declined(format string, args ...any) error {
	return &program.Refusal{Why: omis.Errorf(omis.UnsupportedService, format, args...).Msg}
}
