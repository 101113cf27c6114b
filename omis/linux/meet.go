//go:build linux && amd64

package linux

import (
	"slices"

	"mirador/omis/linux/rendezvous"
	"mirador/omis/linux/warden"
)

// meet makes the place of a watch a crossing if the program allows it. If it returns false the
// watch needs a breakpoint, which has the same effect at a higher cost.
func (m *meeting) meet(w *watch) bool {
	if w.inner || m.o.events.watchful > 0 || m.o.space.breakpoints[w.Addr] != nil {
		return false
	}
	if m.join(w) {
		return true
	}
	if m.o.space.settleIn() != nil || m.site == nil || m.barred != nil {
		return false
	}
	plan, err := m.survey(w.Addr)
	if err != nil {
		return false
	}
	return m.plantJump(plan, w) == nil
}

// plantJump writes a jump for a crossing whose first watch is w. Threads that are where the
// jump will be are moved to the copy before it is written, so that the monitor's death is
// harmless at any moment.
func (m *meeting) plantJump(plan rendezvous.Plan, w *watch) error {
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	if m.site == nil {
		return refuse(plan.Addr, "the program has ended")
	}
	if err := m.site.Prepare(plan); err != nil {
		return err
	}
	if m.site == nil {
		return refuse(plan.Addr, "the program has ended")
	}
	if err := m.serve(); err != nil {
		return err
	}
	if err := m.clearWay(plan); err != nil {
		return err
	}
	patch := m.site.PatchAt(plan.Addr)
	if err := m.o.node.warden.Plant(m.o.proc.PID, plan.Addr, warden.Patch{Standing: patch.Jump, Displaced: patch.Displaced}); err != nil {
		return err
	}
	m.o.veil.patch(patch)
	m.open(plan.Addr, []*watch{w})
	if err := m.site.Plant(plan.Addr); err != nil {
		m.shut(plan.Addr)
		return err
	}
	return nil
}

// open makes a crossing: from now on its hits are reported.
func (m *meeting) open(addr uint64, watches []*watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crossings[addr] = &crossing{watches: watches}
}

// shut ends a crossing and returns its watches.
func (m *meeting) shut(addr uint64) []*watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.crossings[addr]
	delete(m.crossings, addr)
	if c == nil {
		return nil
	}
	return c.watches
}

// supersede is shut for a place that gets a breakpoint: threads that come from the jump are
// still reported.
func (m *meeting) supersede(addr uint64) []*watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.crossings[addr]
	if c == nil {
		return nil
	}
	c.former = true
	return slices.Clone(c.watches)
}

// join adds a watch to the crossing at its address, and returns false if there is none. It
// does not change the slice of watches, which the server may be using.
func (m *meeting) join(w *watch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.crossings[w.Addr]
	if c == nil || c.former {
		return false
	}
	c.watches = append(slices.Clone(c.watches), w)
	return true
}

// leave removes a watch from its crossing, and reports whether it was the last one.
func (m *meeting) leave(w *watch) (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.crossings[w.Addr]
	if c == nil || c.former {
		return false
	}
	c.watches = slices.DeleteFunc(slices.Clone(c.watches), func(other *watch) bool { return other == w })
	return len(c.watches) == 0
}

// unmeet removes a watch, and with the last one the jump.
func (m *meeting) unmeet(w *watch) error {
	if !m.leave(w) {
		return nil
	}
	m.shut(w.Addr)
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	return m.uprootJump(w.Addr)
}

func (m *meeting) uprootJump(addr uint64) error {
	if m.site == nil {
		return nil // the process has ended, or executed another program
	}
	if err := m.site.Remove(addr); err != nil {
		return m.o.space.memoryError(addr, err)
	}
	return m.o.node.warden.Clear(m.o.proc.PID, addr)
}

// giveWay replaces the jumps that displace something of a range by breakpoints.
func (m *meeting) giveWay(addr, length uint64) error {
	if m.site == nil {
		return nil
	}
	for _, at := range m.site.Covering(addr, length) {
		if err := m.exchangeJump(at); err != nil {
			return err
		}
	}
	return nil
}

// giveWayEverywhere replaces all jumps by breakpoints. This is done before the process is saved,
// and before its threads are stopped at every step or system call: in a hold, a thread makes many
// steps and system calls that are not the program's.
func (m *meeting) giveWayEverywhere() {
	if m.site == nil {
		return
	}
	for _, at := range m.site.Standing() {
		_ = m.exchangeJump(at) // if it fails, the jump stays
	}
}
