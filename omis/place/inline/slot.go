//go:build linux && amd64

package inline

import "mirador/omis/place/inline/x86"

// Registers of the search for a slot; RAX has the key, and slot is where to begin.
const (
	at    = x86.RSI
	free  = x86.RDX
	count = x86.RDI
)

// reach is how many slots a thread looks at before it gives up.
const reach = 64

// claimSlot finds the slot of a thread where that is not in its place, or takes one. It
// takes the first that is free, but not before it has seen that none is its own.
func (m *compiler) claimSlot() {
	c := m.c
	again, take, have := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.Here(m.claims)
	c.Push(free)
	c.Push(at)
	c.Push(count)
	c.Here(again)
	m.search(take, have)
	m.countLost()
	c.Here(take)
	m.take(again)
	c.Here(have)
	c.Mov(slot, at)
	m.endSearch()
	c.Jump(m.found)
	c.Here(m.firstSlot)
	c.Data(m.base + groupsAt)
	c.Here(m.behindSlots)
	c.Data(m.base + groupsAt + uint64(m.slots)<<roomShift)
}

func (m *compiler) endSearch() {
	m.c.Pop(count)
	m.c.Pop(at)
	m.c.Pop(free)
}

// search goes to have with the thread's slot, to take with the first free one, or on
// if there is neither in reach.
func (m *compiler) search(take, have x86.Label) {
	c := m.c
	look, known, next, inside := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.Mov(at, slot)
	c.Zero(free)
	c.MovImm(count, reach)
	c.Here(look)
	c.DoLoad(x86.Cmp, x86.RAX, x86.At(at, slotKey))
	c.JumpIf(x86.IfEqual, have)
	c.DoStoreImm(x86.Cmp, x86.At(at, slotKey), relented)
	c.JumpIf(x86.IfAbove, next)
	c.Test(free)
	c.JumpIf(x86.IfNot, known)
	c.Mov(free, at)
	c.Here(known)
	c.DoStoreImm(x86.Cmp, x86.At(at, slotKey), vacant)
	c.JumpIf(x86.IfEqual, take)
	c.Here(next)
	c.DoImm(x86.Add, at, roomSize)
	c.DoLoad(x86.Cmp, at, x86.In(m.behindSlots))
	c.JumpIf(x86.IfBelow, inside)
	c.Load(at, x86.In(m.firstSlot))
	c.Here(inside)
	c.DecReg32(count)
	c.JumpIf(x86.IfNot, look)
	c.Test(free)
	c.JumpIf(x86.IfNot, take)
}

// take makes the free slot the thread's. Where somebody else was quicker, it searches
// again; that may have been the thread itself, in the handler of a signal. At last it
// tells the monitor.
func (m *compiler) take(again x86.Label) {
	c := m.c
	retry, taken := c.NewLabel(), c.NewLabel()
	c.Mov(at, free)
	c.Mov(count, x86.RAX)
	c.Load(x86.RAX, x86.At(at, slotKey))
	c.DoImm(x86.Cmp, x86.RAX, relented)
	c.JumpIf(x86.IfAbove, retry)
	c.LockedSwap(x86.At(at, slotKey), count)
	c.JumpIf(x86.IfEqual, taken)
	c.Here(retry)
	c.Mov(x86.RAX, count)
	c.Jump(again)
	c.Here(taken)
	c.Load32(x86.RAX, x86.FS(m.tid))
	c.Store32(x86.At(at, slotTID), x86.RAX)
	c.ReadClock()
	c.Shl(x86.RDX, 32)
	c.Do(x86.Or, x86.RAX, x86.RDX)
	c.Store(x86.At(at, slotFirst), x86.RAX)
	c.Mov(count, at)
	c.DoLoad(x86.Sub, count, x86.In(m.firstSlot))
	c.Shr(count, roomShift)
	c.DoImm(x86.Add, count, 1)
	c.MovImm(x86.RDX, m.base+headerClaimed)
	c.MovImm(x86.RAX, 1)
	c.LockedFetchAdd(x86.At(x86.RDX, 0), x86.RAX)
	c.DoImm32(x86.And, x86.RAX, int32(m.slots-1))
	c.Shl(x86.RAX, 2)
	c.MovImm(x86.RDX, m.base+claimsAt)
	c.Store32(x86.Sum(x86.RDX, x86.RAX, 0), count)
}

// countLost counts the occurrence as lost in all cells, and does nothing else.
func (m *compiler) countLost() {
	c := m.c
	m.endSearch()
	for i := range m.steps {
		c.MovImm(x86.RAX, m.steps[i].lost)
		c.LockedInc(x86.At(x86.RAX, 0))
	}
	c.Jump(m.over)
}
