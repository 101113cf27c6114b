//go:build linux && amd64

package inline

import (
	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// Registers of the search for a slot.
const (
	at    = x86.RSI // a slot
	place = x86.RDX // the thread's entry in the table
	count = x86.RDI
)

// reach is how many slots a thread examines, and leap the distance between them. With slots side by side,
// threads that begin one after the other would have to pass each other's slots. An odd leap reaches every
// slot.
const (
	reach = 64
	leap  = 617
)

// claimSlot gives the thread a slot, at its first hit anywhere.
func (m *compiler) claimSlot() {
	c := m.c
	taken, have := c.NewLabel(), c.NewLabel()
	c.Here(m.claims)
	for _, r := range []x86.Reg{x86.RAX, place, at, count} {
		c.Push(r)
	}
	m.search(taken)
	c.Zero(slot)
	c.Jump(have)
	c.Here(taken)
	m.take()
	c.Here(have)
	for _, r := range []x86.Reg{count, at, place, x86.RAX} {
		c.Pop(r)
	}
	c.Test(slot)
	c.JumpIf(x86.IfNot, m.found)
	m.joinCrowd()
}

// search takes a free slot. Each search begins elsewhere. It continues after its code if it finds none.
func (m *compiler) search(taken x86.Label) {
	c := m.c
	look, next := c.NewLabel(), c.NewLabel()
	c.MovImm(place, m.base+headerTurn)
	c.MovImm(count, 1)
	c.LockedFetchAdd(x86.At(place, 0), count)
	c.MovImm(place, m.base+uint64(m.groupsAt()))
	c.MovImm(slot, reach)
	c.Here(look)
	c.DoImm32(x86.And, count, int32(m.slots-1))
	c.Mov(at, count)
	c.Shl(at, roomShift)
	c.Do(x86.Add, at, place)
	c.DoStoreImm(x86.Cmp, x86.At(at, slotTID), 0)
	c.JumpIf(x86.IfNot, next)
	c.Push(count)
	c.Load32(count, x86.FS(m.tid))
	c.Zero(x86.RAX)
	c.LockedSwap(x86.At(at, slotTID), count)
	c.Pop(count)
	c.JumpIf(x86.IfEqual, taken)
	c.Here(next)
	c.DoImm32(x86.Add, count, leap)
	c.DecReg32(slot)
	c.JumpIf(x86.IfNot, look)
}

// take enters the slot into the table, unless the thread has got another one meanwhile in a signal handler.
// Finally it writes the claim for the monitor.
func (m *compiler) take() {
	c := m.c
	ours, done := c.NewLabel(), c.NewLabel()
	m.readCounter()
	c.Store(x86.At(at, slotFirst), x86.RAX)
	m.findPlace()
	c.Zero(x86.RAX)
	c.LockedSwap(x86.At(slot, 0), at)
	c.JumpIf(x86.IfEqual, ours)
	c.StoreImm(x86.At(at, slotFirst), 0)
	c.StoreImm(x86.At(at, slotTID), 0)
	c.Mov(slot, x86.RAX)
	c.Jump(done)
	c.Here(ours)
	c.Mov(slot, at)
	c.MovImm(place, m.base+headerClaimed)
	c.MovImm(x86.RAX, 1)
	c.LockedFetchAdd(x86.At(place, 0), x86.RAX)
	c.DoImm32(x86.And, x86.RAX, int32(m.slots-1))
	c.Shl(x86.RAX, 2)
	c.MovImm(place, m.base+claimsAt)
	c.DoImm32(x86.And, count, int32(m.slots-1))
	c.DoImm(x86.Add, count, 1)
	c.Store32(x86.Sum(place, x86.RAX, 0), count)
	c.Here(done)
}

// joinCrowd runs the steps for a thread without a slot of its own. It adds to the crowd's rows, by locked
// instructions. An interval needs a row of the thread's own, so it only counts as lost.
func (m *compiler) joinCrowd() {
	c := m.c
	c.MovImm(slot, m.base+headerCrowd)
	c.StoreImm(x86.At(slot, 0), 1)
	for i := range m.steps {
		s := &m.steps[i]
		if s.do != program.OpAdd {
			c.MovImm(slot, s.lost)
			c.LockedInc(x86.At(slot, 0))
			continue
		}
		c.MovImm(slot, m.base+uint64(m.slotAt(crowd)))
		m.add(s, c.Lock)
	}
	c.Jump(m.over)
}
