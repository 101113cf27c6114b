//go:build linux && amd64

package linux

import (
	"time"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/rendezvous"
)

// A thread that is held by rendezvous, or is on its way to or from a hold, executes code of
// the monitor. A service that stops it wants to find it where the program has it, so the
// thread comes out: if it is kept in a hold, it gets the registers of the hold, and is held by
// ptrace from then on; if it is before a hold, it is sent back to the place that it comes
// from; otherwise it comes out by itself in a moment.

const (
	moment = 50 * time.Microsecond

	// handlerPatience bounds the time that a signal handler may take that a kept thread
	// executes. If the handler takes longer, the thread stays in it.
	handlerPatience = 20 * time.Millisecond
)

// comeOut takes stopped threads out of holds and patches. Threads in a group-stop cannot
// continue for a moment.
func (m *meeting) comeOut(among func(*thread) bool) {
	m.o.patcher.comeOutOfPatches(among)
	server := m.server
	if server == nil || len(m.underWay(among, true)) == 0 {
		return
	}
	server.Gate(true)
	defer server.Gate(false)
	begin := time.Now()
	for !m.o.ended && m.server == server {
		waited := time.Since(begin)
		late := m.underWay(among, waited < handlerPatience)
		if len(late) == 0 || waited > patience {
			return
		}
		for _, t := range late {
			t.stop = running
			_ = ptrace.Cont(t.tid, 0)
		}
		time.Sleep(moment)
		for _, t := range late {
			m.o.tracer.interrupt(t)
		}
		if !m.o.tracer.pump(patience, func() bool { return m.o.tracer.allStopped(late) }) {
			return
		}
		m.o.tracer.absorb(among)
	}
}

// comeOutOfPatches lets stopped threads leave patches. They leave them at once unless a signal
// handler runs.
func (p *patcher) comeOutOfPatches(among func(*thread) bool) {
	g := p.o.node.grounds.of(p.o.proc)
	if g == nil {
		return
	}
	for begin := time.Now(); !p.o.ended && time.Since(begin) < handlerPatience; {
		late := p.standing(func(t *thread, pc uint64) bool { return (among == nil || among(t)) && g.site.Contains(pc) })
		if len(late) == 0 || !p.goOnFor(moment, late) {
			return
		}
		p.o.tracer.absorb(among)
	}
}

// underWay takes threads out of the holds in which they are kept, sends back those that are
// before a hold, and returns those that have to come out by themselves.
func (m *meeting) underWay(among func(*thread) bool, fromHandlers bool) []*thread {
	var late []*thread
	for _, t := range m.o.tracer.threads {
		if among != nil && !among(t) || !t.stopped() || t.groupStopped() || t.inEvent() || t.holds > 0 {
			continue
		}
		var regs ptrace.Regs
		switch {
		case ptrace.GetRegs(t.tid, &regs) != nil:
		case m.site.Holding(regs.Rip):
			// At the entry to a system call the kernel is about to use the registers.
			if t.stop == entryStop || !m.extract(t, &regs) && !m.sendBack(t, &regs) {
				late = append(late, t)
			}
		case fromHandlers && m.keepsThread(t.tid):
			late = append(late, t)
		}
	}
	return late
}

// isHolding reports whether a stopped thread is in a hold, or on its way to or from one.
func (m *meeting) isHolding(t *thread) bool {
	var regs ptrace.Regs
	return m.site != nil && ptrace.GetRegs(t.tid, &regs) == nil && m.site.Holding(regs.Rip)
}

// extract takes a thread out of the hold in which it is kept.
func (m *meeting) extract(t *thread, regs *ptrace.Regs) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return false // an earlier monitor wrote the code
	}
	now := heldRegisters(regs)
	ok, err := m.server.Extract(m.site, t.tid, &now, func(at *rendezvous.Hit, s rendezvous.Stand) error {
		if err := m.haveStand(t, regs, s); err != nil {
			return err
		}
		for k := range m.kept {
			if k.at == at && k.stopped == nil {
				k.stopped = t
				t.holds++
			}
		}
		return nil
	})
	return ok && err == nil
}

// sendBack moves a thread that waits before a hold back to the place that it comes from.
func (m *meeting) sendBack(t *thread, regs *ptrace.Regs) bool {
	now := heldRegisters(regs)
	stand, ok := m.site.Rest(&now)
	return ok && m.haveStand(t, regs, stand) == nil
}

// haveStand gives a stopped thread with the registers regs the state of another place.
func (m *meeting) haveStand(t *thread, regs *ptrace.Regs, s rendezvous.Stand) error {
	if s.Blocked {
		if err := ptrace.SetSigmask(t.tid, s.Mask); err != nil {
			return err
		}
	}
	now := *regs
	for i, r := range numbered(&now)[:len(s.Regs)] {
		*r = s.Regs[i]
	}
	now.Orig_rax = ^uint64(0) // the thread is in no system call of the program
	return ptrace.SetRegs(t.tid, &now)
}

// heldRegisters returns registers of ptrace in the order of a hold's.
func heldRegisters(regs *ptrace.Regs) (r rendezvous.Registers) {
	for i, v := range numbered(regs)[:len(r)] {
		r[i] = *v
	}
	return r
}

// exchangeJump replaces the jump at a crossing by a breakpoint. No hit is lost: threads that
// arrive meanwhile are stopped, and threads that are kept there continue behind it.
func (m *meeting) exchangeJump(addr uint64) error {
	b, err := m.o.space.ready(addr)
	if err != nil {
		return err
	}
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	m.comeOut(nil)
	if m.site == nil {
		return ended(m.o.proc.PID)
	}
	if err := m.uprootJump(addr); err != nil {
		return err
	}
	b.watches = m.supersede(addr)
	if err := m.o.space.stand(b); err != nil {
		return omis.Errorf(omis.OSError, "the breakpoint at %#x is lost: %w", addr, err)
	}
	return nil
}
