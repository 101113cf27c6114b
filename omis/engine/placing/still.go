package placing

import (
	"slices"
	"sync"
	"time"

	"mirador/omis"
)

// stillness suspends a process while requests move from one placement to another, because events in between
// would be missed. Callers of its methods hold the lock.
type stillness struct {
	x    *Placing
	Proc *Process
	goOn func() // nil: the process is not suspended, or by another stillness
}

// mostStill is the longest time that a process is suspended. A request that becomes a breakpoint takes half
// a millisecond. If requests are not placed by then, they may miss events: their State and the log say so.
const mostStill = time.Second

// begin suspends the process, if a moving subscription is executed in it (and does not rest).
func (s *stillness) begin(moving []*Subscription) {
	moving = slices.DeleteFunc(slices.Clone(moving), func(m *Subscription) bool { return m.Request.Subs[s.Proc] != m })
	for _, m := range moving {
		s.Proc.moving = append(s.Proc.moving, m.Request)
	}
	if s.Proc.still || len(moving) == 0 {
		return
	}
	s.prepare(moving)
	thaw := sync.OnceFunc(s.Proc.Host.Freeze())
	late := time.AfterFunc(mostStill, func() {
		s.x.log.Warn("so many requests move to another placement that their process goes on meanwhile, and something may be missed", "process", s.Proc.Token)
		thaw()
	})
	s.Proc.still = true
	s.goOn = func() {
		if !late.Stop() {
			for _, c := range s.Proc.moving {
				c.missed.Store(time.Now().UnixNano())
			}
		}
		thaw()
		s.Proc.still, s.Proc.moving = false, nil
	}
}

// prepare calibrates what corrects the moving timers, because that takes long and must not be done while
// the process is suspended.
func (s *stillness) prepare(moving []*Subscription) {
	n := s.Proc.machine()
	for _, m := range moving {
		if !m.Request.Times {
			continue
		}
		n.Calibrate(omis.Trap)
		if m.placed != nil {
			n.Calibrate(m.placed.placer.Name())
		}
	}
}

func (s *stillness) end() {
	if s.goOn != nil {
		s.goOn()
	}
}
