package engine

import (
	"slices"
	"sync"
	"time"

	"mirador/omis"
)

// stillness keeps a process suspended while requests move from one placement to another:
// who came by in between would be missed. Its methods want Engine.admin held by their
// caller.
type stillness struct {
	e    *Engine
	proc *process
	goOn func() // nil: it is not suspended, or by somebody else
}

// mostStill is how long a process stays suspended for that. A request that becomes a
// breakpoint takes half a millisecond; what is not in its place by then misses what
// happens, and the log says so.
const mostStill = time.Second

// begin suspends the process, if something moves that runs in it and not only rests.
func (s *stillness) begin(moving []*subscription) {
	moving = slices.DeleteFunc(slices.Clone(moving), func(m *subscription) bool { return m.csr.subs[s.proc] != m })
	if s.proc.still || len(moving) == 0 {
		return
	}
	s.prepare(moving)
	thaw := sync.OnceFunc(fleetOf(s.proc).freeze(s.e))
	late := time.AfterFunc(mostStill, func() {
		s.e.log.Warn("so many requests move to another placement that their process goes on meanwhile, and something may be missed", "process", s.proc.token)
		thaw()
	})
	s.proc.still = true
	s.goOn = func() {
		late.Stop()
		thaw()
		s.proc.still = false
	}
}

// prepare makes sure that it is known what timers are corrected by, before and after. Else
// that would be measured in the middle, which takes long.
func (s *stillness) prepare(moving []*subscription) {
	n := s.proc.node()
	for _, m := range moving {
		if !m.csr.times {
			continue
		}
		n.calibrate(omis.Trap)
		if m.placed != nil {
			n.calibrate(m.placed.placer.Name())
		}
	}
}

func (s *stillness) end() {
	if s.goOn != nil {
		s.goOn()
	}
}
