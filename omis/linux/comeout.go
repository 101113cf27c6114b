//go:build linux && amd64

package linux

import (
	"time"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
	"mirador/omis/linux/rendezvous"
)

// A thread that is held by rendezvous, or on its way to or from a hold, is in code
// of ours. Whoever stops it wants to find it where the program has it. The thread
// comes out: from a hold in which it is kept, by being given the registers of the
// hold (from then on it is held by ptrace); from before a hold, by being sent back
// to the place it comes from; from elsewhere by itself, in a moment.

const (
	moment = 50 * time.Microsecond

	// handlerPatience is how long a signal handler may take that a kept thread is
	// in. One that takes longer is what the thread is doing.
	handlerPatience = 20 * time.Millisecond
)

// comeOut does so with stopped threads. Those that are in a group-stop cannot go
// on for a moment.
func (o *owner) comeOut(among func(*thread) bool) {
	o.comeOutOfPatches(among)
	server := o.meeting.server
	if server == nil || len(o.underWay(among, true)) == 0 {
		return
	}
	server.Gate(true)
	defer server.Gate(false)
	begin := time.Now()
	for !o.ended && o.meeting.server == server {
		waited := time.Since(begin)
		late := o.underWay(among, waited < handlerPatience)
		if len(late) == 0 || waited > patience {
			return
		}
		for _, t := range late {
			t.stop = running
			_ = ptrace.Cont(t.tid, 0)
		}
		time.Sleep(moment)
		for _, t := range late {
			o.interrupt(t)
		}
		if !o.pump(patience, func() bool { return o.allStopped(late) }) {
			return
		}
		o.absorb(among)
	}
}

// comeOutOfPatches has stopped threads leave code that was put into the program; they
// are through it in no time, unless a signal handler came in between.
func (o *owner) comeOutOfPatches(among func(*thread) bool) {
	g := o.node.groundOf(o.proc)
	if g == nil {
		return
	}
	for begin := time.Now(); !o.ended && time.Since(begin) < handlerPatience; {
		late := o.standing(func(t *thread, pc uint64) bool { return (among == nil || among(t)) && g.site.Contains(pc) })
		if len(late) == 0 || !o.goOnFor(moment, late) {
			return
		}
		o.absorb(among)
	}
}

// underWay takes threads out of holds they are kept in, sends those back that are
// before one, and lists those that have to come out by themselves.
func (o *owner) underWay(among func(*thread) bool, fromHandlers bool) []*thread {
	var late []*thread
	for _, t := range o.threads {
		if among != nil && !among(t) || !t.stopped() || t.groupStopped() || t.inEvent() || t.holds > 0 {
			continue
		}
		var regs ptrace.Regs
		switch {
		case ptrace.GetRegs(t.tid, &regs) != nil:
		case o.meeting.site.Holding(regs.Rip):
			// At the entry to a system call the kernel is about to use the registers.
			if t.stop == entryStop || !o.extract(t, &regs) && !o.sendBack(t, &regs) {
				late = append(late, t)
			}
		case fromHandlers && o.meeting.keepsThread(t.tid):
			late = append(late, t)
		}
	}
	return late
}

// isHolding tells whether a stopped thread is in a hold, or on its way.
func (o *owner) isHolding(t *thread) bool {
	var regs ptrace.Regs
	return o.meeting.site != nil && ptrace.GetRegs(t.tid, &regs) == nil && o.meeting.site.Holding(regs.Rip)
}

// extract takes a thread out of the hold in which it is kept.
func (o *owner) extract(t *thread, regs *ptrace.Regs) bool {
	m := o.meeting
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return false // the code was there before us
	}
	now := heldRegisters(regs)
	ok, err := m.server.Extract(m.site, t.tid, &now, func(at *rendezvous.Hit, s rendezvous.Stand) error {
		if err := o.haveStand(t, regs, s); err != nil {
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

// sendBack has a thread that waits before a hold stand at its place again: it has
// not been there.
func (o *owner) sendBack(t *thread, regs *ptrace.Regs) bool {
	now := heldRegisters(regs)
	stand, ok := o.meeting.site.Rest(&now)
	return ok && o.haveStand(t, regs, stand) == nil
}

// haveStand gives a stopped thread, which has regs, others.
func (o *owner) haveStand(t *thread, regs *ptrace.Regs, s rendezvous.Stand) error {
	if s.Blocked {
		if err := ptrace.SetSigmask(t.tid, s.Mask); err != nil {
			return err
		}
	}
	now := *regs
	for i, r := range numbered(&now)[:len(s.Regs)] {
		*r = s.Regs[i]
	}
	now.Orig_rax = ^uint64(0) // it is in no system call of the program
	return ptrace.SetRegs(t.tid, &now)
}

// heldRegisters are those of ptrace in the order of a hold's.
func heldRegisters(regs *ptrace.Regs) (r rendezvous.Registers) {
	for i, v := range numbered(regs)[:len(r)] {
		r[i] = *v
	}
	return r
}

// exchangeJump makes a breakpoint of the jump at a crossing. No hit is lost:
// whoever comes to the place meanwhile is stopped, whoever is kept there goes on
// behind it.
func (o *owner) exchangeJump(addr uint64) error {
	b, err := o.ready(addr)
	if err != nil {
		return err
	}
	o.freeze(nil)
	defer o.thaw()
	o.comeOut(nil)
	if o.meeting.site == nil {
		return ended(o.proc.PID)
	}
	if err := o.uprootJump(addr); err != nil {
		return err
	}
	b.watches = o.meeting.supersede(addr)
	if err := o.stand(b); err != nil {
		return omis.Errorf(omis.OSError, "the breakpoint at %#x is lost: %v", addr, err)
	}
	return nil
}
