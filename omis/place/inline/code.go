//go:build linux && amd64

package inline

import (
	"mirador/omis"
	"mirador/omis/place/inline/x86"
)

// compiler makes the code of a program for places of a process. It may be used many
// times, but by one goroutine at a time.
type compiler struct {
	tid     int32 // where a thread has its number, behind its pointer
	self    bool  // a thread finds its pointer in memory
	base    uint64
	slots   int
	ordered bool   // the clock waits for the instructions before it
	filter  uint64 // address of the numbers of the threads that are meant
	named   int    // how many these are; 0: all threads
	steps   []step

	c      *x86.Code
	spot   omis.Spot
	saved  []x86.Reg
	pushed int32 // how far the stack pointer is from where the program has it

	off, claims, found, over, end x86.Label
	firstSlot, behindSlots        x86.Label // data: addresses
}

// step is a step of a program.
type step struct {
	do    omis.Operation
	value int64
	row   uint64 // of the thread: the distance from its slot
	open  int32  // of a timer: the distance of its open intervals from the row
	lost  uint64 // address of the number of occurrences that left no trace
}

// Registers of a program, beside RAX and RDX for the moment.
const (
	slot = x86.RCX // the address of the thread's slot
	row  = x86.RSI // of a timer
	now  = x86.RDI // the time of the hit, where an interval ends
)

// Parts of a code. What happens once stands in the middle: the code goes on behind its
// end.
const (
	partFront = iota
	partRare
	partSteps
)

// bytes makes the code for a place.
func (m *compiler) bytes(spot omis.Spot) ([]byte, error) {
	m.c, m.spot, m.pushed, m.saved = &x86.Code{}, spot, 0, m.registers()
	c := m.c
	for _, l := range []*x86.Label{&m.off, &m.claims, &m.found, &m.over, &m.end, &m.firstSlot, &m.behindSlots} {
		*l = c.NewLabel()
	}
	c.Part(partFront)
	m.enter()
	if m.has(omis.OpStop) {
		m.readClock()
		c.Mov(now, x86.RAX)
	}
	m.filterThreads()
	m.findSlot()
	c.Jump(m.found)
	c.Part(partRare)
	m.claimSlot()
	c.Part(partSteps)
	c.Here(m.found)
	for i := range m.steps {
		m.step(&m.steps[i])
	}
	c.Here(m.over)
	m.leave()
	return c.Bytes(spot.Code)
}

func (m *compiler) has(do omis.Operation) bool {
	for i := range m.steps {
		if m.steps[i].do == do {
			return true
		}
	}
	return false
}

// registers are those that the code uses beside RAX and RCX.
func (m *compiler) registers() (list []x86.Reg) {
	times := m.has(omis.OpStart) || m.has(omis.OpStop)
	if times || !m.self {
		list = append(list, x86.RDX)
	}
	if times {
		list = append(list, row)
	}
	if m.has(omis.OpStop) {
		list = append(list, now)
	}
	return list
}

// redZone is what a function may use below its stack pointer.
const redZone = 128

// enter looks at the switch, and saves what the code changes. Where a function begins,
// the flags are nobody's, and nothing is below the stack pointer.
func (m *compiler) enter() {
	c := m.c
	if m.spot.Entry {
		c.CmpByte(x86.Abs(m.spot.Switch), 0)
		c.JumpIf(x86.IfEqual, m.end)
		m.push(x86.RCX)
		m.push(x86.RAX)
	} else {
		c.Lea(x86.RSP, x86.At(x86.RSP, -redZone))
		m.pushed += redZone
		m.push(x86.RCX)
		c.Load8(x86.RCX, x86.Abs(m.spot.Switch))
		c.JumpIfRCXZero(m.off)
		m.push(x86.RAX)
		c.SaveFlags()
		m.push(x86.RAX)
		resting := c.NewLabel()
		c.Part(partRare)
		c.Here(m.off) // in reach of the short jump
		c.Jump(resting)
		c.Part(partFront)
		m.off = resting
	}
	for _, r := range m.saved {
		m.push(r)
	}
}

func (m *compiler) push(r x86.Reg) {
	m.c.Push(r)
	m.pushed += 8
}

// leave gives back what enter has saved.
func (m *compiler) leave() {
	c := m.c
	for i := range m.saved {
		c.Pop(m.saved[len(m.saved)-1-i])
	}
	c.Pop(x86.RAX)
	if !m.spot.Entry {
		c.RestoreFlags()
		c.Pop(x86.RAX)
		c.Here(m.off)
	}
	c.Pop(x86.RCX)
	if !m.spot.Entry {
		c.Lea(x86.RSP, x86.At(x86.RSP, redZone))
	}
	c.Here(m.end)
}

// filterThreads goes over everything for threads that are not meant.
func (m *compiler) filterThreads() {
	if m.named == 0 {
		return
	}
	c := m.c
	next, meant := c.NewLabel(), c.NewLabel()
	c.Load32(x86.RAX, x86.FS(m.tid))
	c.MovImm(x86.RCX, m.filter)
	c.Here(next)
	c.DoLoad32(x86.Cmp, x86.RAX, x86.At(x86.RCX, 0))
	c.JumpIf(x86.IfEqual, meant)
	c.DoImm(x86.Add, x86.RCX, 4)
	c.DoImm32(x86.Cmp, x86.RCX, int32(uint32(m.filter)+4*uint32(m.named)))
	c.JumpIf(x86.IfNot, next)
	c.Jump(m.over)
	c.Here(meant)
}

// findSlot looks for the thread's slot where it most likely is: at the place that its
// number says.
func (m *compiler) findSlot() {
	c := m.c
	c.Load32(slot, x86.FS(m.tid))
	c.Mov(x86.RAX, slot)
	c.Shl(x86.RAX, keyShift)
	if m.self {
		c.DoLoad(x86.Add, x86.RAX, x86.FS(0))
	} else {
		c.ReadFSBase(x86.RDX)
		c.Do(x86.Add, x86.RAX, x86.RDX)
	}
	c.DoImm32(x86.And, slot, int32(m.slots-1))
	c.Shl32(slot, roomShift)
	c.DoLoad(x86.Add, slot, x86.In(m.firstSlot))
	c.DoLoad(x86.Cmp, x86.RAX, x86.At(slot, slotKey))
	c.JumpIf(x86.IfNot, m.claims)
}

// readClock reads the clock into RAX, when an interval ends. With the ordered clock
// nothing of the interval is still to be done then, and nothing else has begun.
func (m *compiler) readClock() {
	c := m.c
	if m.ordered {
		c.ReadClockOrdered()
		c.Fence()
	} else {
		c.ReadClock()
	}
	c.Shl(x86.RDX, 32)
	c.Do(x86.Or, x86.RAX, x86.RDX)
}

// step makes the code of a step. It finds the thread's slot, and may spoil all registers
// but that and the time.
func (m *compiler) step(s *step) {
	switch s.do {
	case omis.OpAdd:
		m.add(s)
	case omis.OpStart:
		m.start(s)
	case omis.OpStop:
		m.stop(s)
	}
}

// add adds to a sum. Each change is a single instruction, so that a handler of a signal
// may do the same in between.
func (m *compiler) add(s *step) {
	c := m.c
	at := x86.At(slot, int32(s.row))
	if s.row != uint64(int32(s.row)) {
		c.MovImm(x86.RAX, s.row)
		at = x86.Sum(slot, x86.RAX, 0)
	}
	if s.value == 1 {
		c.Inc(at)
		return
	}
	c.Inc(at.Plus(sumBegun))
	if s.value == int64(int32(s.value)) {
		c.DoStoreImm(x86.Add, at.Plus(sumValue), int32(s.value))
	} else {
		c.Push(x86.RBX)
		c.MovImm(x86.RBX, uint64(s.value))
		c.DoStore(x86.Add, at.Plus(sumValue), x86.RBX)
		c.Pop(x86.RBX)
	}
	c.Inc(at.Plus(sumDone))
}
