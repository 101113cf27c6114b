package engine

import (
	"strings"

	"mirador/omis"
	"mirador/omis/node"
)

// heldCost is what it costs to hold a thread, in nanoseconds, roughly: by a stop of
// ptrace, with target and monitor on one CPU. Between CPUs it is the latency of their
// wake-ups, several times as much.
const heldCost = 10_000

// place chooses where a request's actions run.
func (e *Engine) place(r *omis.Request, steps []step) omis.Placement {
	if r.Event == nil {
		return omis.Placement{Name: "request", Where: "in the engine", Why: "it is executed once, at once"}
	}
	src := e.sources[r.Event.Service]
	if src.kind == 0 {
		return omis.Placement{Name: "monitor", Where: "in the engine", Why: r.Event.Service + " is an event of the monitor itself"}
	}
	const where = "in the engine, with the thread held until the list is done"
	if r.Locked {
		return omis.Placement{Name: omis.Trap, Where: where, Cost: heldCost, Why: "a locked list must wait until no other list is executed"}
	}
	if src.kind == node.EventProcCreated {
		return omis.Placement{Name: omis.Trap, Where: where, Cost: heldCost, Why: "the node must be asked who the new process is"}
	}
	for i := range steps {
		if !steps[i].isLocal() {
			return omis.Placement{Name: omis.Trap, Where: where, Cost: heldCost, Why: steps[i].service.Name + " needs more than the event itself"}
		}
	}
	return omis.Placement{
		Name: omis.Trap, Where: "in the monitor, on a thread that serves the process",
		Why: "its actions need nothing but the event itself", Cost: heldCost, Local: true,
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
