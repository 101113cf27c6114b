package engine

import (
	"fmt"
	"strings"

	"mirador/omis"
)

// Placement says where the actions of a request run, and why there.
type Placement struct {
	// Name is "request" for an unconditional request, "monitor" for events of the
	// monitor itself, "trap" for events of the program.
	Name  string
	Where string
	Why   string

	local bool
}

func (p Placement) String() string { return fmt.Sprintf("%s, %s: %s", p.Name, p.Where, p.Why) }

// place chooses where a request's actions run.
func (e *Engine) place(r *omis.Request, steps []step) Placement {
	if r.Event == nil {
		return Placement{Name: "request", Where: "in the engine", Why: "it is executed once, at once"}
	}
	src := e.sources[r.Event.Service]
	if src.kind == 0 {
		return Placement{Name: "monitor", Where: "in the engine", Why: r.Event.Service + " is an event of the monitor itself"}
	}
	const held = "in the engine, with the thread held until the list is done"
	if r.Locked {
		return Placement{Name: "trap", Where: held, Why: "a locked list must wait until no other list is executed"}
	}
	if src.kind == omis.EventProcCreated {
		return Placement{Name: "trap", Where: held, Why: "the node must be asked who the new process is"}
	}
	for i := range steps {
		if !steps[i].isLocal() {
			return Placement{Name: "trap", Where: held, Why: steps[i].service.Name + " needs more than the event itself"}
		}
	}
	return Placement{
		Name: "trap", Where: "in the monitor's owner thread of the process",
		Why: "its actions need nothing but the event itself; nothing is cheaper, as this monitor generates no code for the program or the kernel", local: true,
	}
}

// isLocal tells whether the table and the implementation allow the step to run
// on the owner of a process. Only the objects of extensions can be had without the
// node; their classes have a prefix.
func (s *step) isLocal() bool {
	if !s.service.Local || s.do.local == nil {
		return false
	}
	return s.subject < 0 || strings.Contains(string(s.service.Object), "_")
}
