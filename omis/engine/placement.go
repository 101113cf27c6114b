package engine

import (
	"strings"

	"mirador/omis"
	"mirador/omis/node"
)

// heldCost is the approximate cost in nanoseconds of holding a thread by a ptrace stop, with target and
// monitor on one CPU. Between CPUs it is several times as much, because of the latency of wake-ups.
const heldCost = 10_000

// basePlacement returns where a request's actions run if they do not run as programs of a placer.
func (e *Engine) basePlacement(r *omis.Request, steps []step) omis.Placement {
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

// isLocal reports whether a step may run on the owner of a process, by the table and the implementation.
// Only objects of extensions are available there without asking the node; their classes have a prefix.
func (s *step) isLocal() bool {
	if !s.service.Local || s.do.local == nil {
		return false
	}
	return s.subject < 0 || strings.Contains(string(s.service.Object), "_")
}
