package engine

import "slices"

// stillness keeps a process suspended while requests move from one placement to another:
// who came by in between would be missed.
type stillness struct {
	e    *Engine
	proc *process
	goOn func() // nil: it runs
}

// mostMoving is how many requests a process is suspended for. To become a breakpoint each
// takes half a millisecond.
const mostMoving = 100

// begin suspends the process, unless it is already, or nothing moves that runs in it, or
// too much. To move to the monitor may take a measurement of what it costs, which is made
// before: it takes long.
func (s *stillness) begin(moving []*subscription, toMonitor bool) {
	moving = slices.DeleteFunc(slices.Clone(moving), func(m *subscription) bool { return m.csr.subs[s.proc] != m })
	switch {
	case s.goOn != nil || len(moving) == 0:
		return
	case len(moving) > mostMoving:
		s.e.log.Warn("requests move to another placement while their process runs: what happens meanwhile is not measured", "process", s.proc.token, "requests", len(moving))
		return
	}
	if toMonitor && slices.ContainsFunc(moving, func(m *subscription) bool { return m.csr.times }) {
		s.proc.node().calibrate(trapped)
	}
	s.goOn = fleetOf(s.proc).freeze(s.e)
}

func (s *stillness) end() {
	if s.goOn != nil {
		s.goOn()
	}
}
