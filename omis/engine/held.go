package engine

import "mirador/omis"

// held is the thread of a hit.
type held struct {
	node *node
	proc omis.ProcID
	tid  int
	by   string // omis.Hit.Held
}

// cpuTime is its CPU time: see service.Occurrence.
func (h held) cpuTime() (int64, error) {
	timer, able := h.node.Node.(omis.CPUTimer)
	switch {
	case !able:
		return 0, omis.Errorf(omis.UnsupportedService, "the monitor of this node cannot tell the CPU time of threads")
	case h.by == "":
		return 0, omis.Errorf(omis.UnsupportedService, "no thread is held at this event, whose CPU time could be told: it goes on")
	}
	return timer.CPUTime(h.proc, h.tid)
}
