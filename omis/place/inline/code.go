//go:build linux && amd64

package inline

import (
	"slices"

	"mirador/omis/code/x86"
	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// compiler makes the machine code of a program. It can make the code for several places, one after the
// other. One goroutine at a time may use it.
type compiler struct {
	shape
	tid     int32 // where a thread has its number: an offset from its thread pointer
	base    uint64
	timing  timing
	when    node.Condition // of the flags
	ordered bool           // the clock waits for earlier instructions
	late    bool           // the clock is read only after an open interval is found
	filter  uint64         // address of the thread numbers that the program is limited to
	named   int            // the number of these threads; 0: all threads
	steps   []step
	code    node.GoCode // of the place: whether it is Go

	c      *x86.Code
	spot   node.Spot
	saved  []x86.Reg
	pushed int32             // how far the stack pointer is from its value in the program
	kept   map[x86.Reg]int32 // pushed when the program's value of a register was saved

	off, claims, found, over, end x86.Label
	table                         x86.Label // data: address of the table of slots
	goTable                       x86.Label // data: address of the table of goroutines
}

// step is one operation of a program.
type step struct {
	do    program.Operation
	value int64
	load  program.Load
	row   uint64 // distance of the thread's row from its slot
	open  int32  // of a timer: distance of its open intervals from the row
	level int32  // of a timer: distance between two open intervals
	oneIn int64  // of a timer: see program.Op
	lost  uint64 // address of the number of lost hits

	whole  bool // see program.Op
	spread bool // the timer has a histogram
	tells  bool // the next step records what this one measures

	// Of a timer in a function of Go: see goroutine.go.
	goroutine bool
	entry     int    // of the timer, in the directory
	reset     uint64 // address of the number of resets

	// Of a trace: see notes.go.
	mark  int32
	ring  uint64 // distance of its ring from the thread's slot
	rooms int    // of the ring

	ofGoroutine bool // the value is the goroutine, in front of a record of the stack pointer
}

// Registers that code uses, besides RAX and RDX.
const (
	slot = x86.RCX // address of the thread's slot
	row  = x86.RCX // address of the thread's row of a timer, which replaces the slot
	now  = x86.RSI // time of the hit, where an interval ends
	sp   = x86.RDX // the program's stack pointer, all bits inverted

	spare = x86.RDI // for histograms, and to convert ticks

	result = x86.R8 // what a step has measured, for the next one; or noResult
)

// Parts of the code. partRare is executed seldom; it is between the others, so the code can continue at its
// end.
const (
	partFront = iota
	partRare
	partSteps
)

// bytes makes the code for a place.
func (m *compiler) bytes(spot node.Spot) ([]byte, error) {
	m.c, m.spot, m.pushed = &x86.Code{}, spot, spot.Pushed
	if m.when != node.Always && m.dead() {
		return nil, &program.Refusal{Why: "the flags have no meaning where functions begin and end"}
	}
	m.saved, m.kept = m.registers(), make(map[x86.Reg]int32)
	c := m.c
	for _, l := range []*x86.Label{&m.off, &m.claims, &m.found, &m.over, &m.end, &m.table, &m.goTable} {
		*l = c.NewLabel()
	}
	c.Part(partFront)
	m.enter()
	if m.has(program.OpStop) && !m.late {
		m.readClock()
		c.Mov(now, x86.RAX)
	}
	m.filterThreads()
	m.findSlot()
	c.Jump(m.found)
	c.Part(partRare)
	c.Here(m.table)
	c.Data(m.base + tableAt)
	c.Here(m.goTable)
	c.Data(m.base + uint64(m.goAt()))
	m.claimSlot()
	c.Part(partSteps)
	c.Here(m.found)
	for i := range m.steps {
		m.step(&m.steps[i], i == len(m.steps)-1)
	}
	c.Here(m.over)
	m.leave()
	return c.Bytes(spot.Code)
}

func (m *compiler) has(do program.Operation) bool {
	for i := range m.steps {
		if m.steps[i].do == do {
			return true
		}
	}
	return false
}

// registers returns the registers that the code uses besides RCX.
func (m *compiler) registers() (list []x86.Reg) {
	if m.named > 0 {
		list = append(list, x86.RAX)
	}
	for i := range m.steps {
		for _, r := range m.registersOf(&m.steps[i]) {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	if !m.dead() {
		list = slices.DeleteFunc(list, func(r x86.Reg) bool { return r == x86.RAX }) // enter saves it with the flags
	}
	return list
}

// isNear reports whether an instruction can address the row from the slot.
func (s *step) isNear() bool { return s.row == uint64(int32(s.row)) }

// isLarge reports whether the value must be loaded into a register.
func (s *step) isLarge() bool { return s.load.IsLoaded() || s.value != int64(int32(s.value)) }

// registersOf returns the registers that a step uses besides RCX.
func (m *compiler) registersOf(s *step) []x86.Reg {
	list := m.ownRegisters(s)
	if s.tells || s.load.From == program.FromStep {
		list = append(list, result)
	}
	return list
}

func (m *compiler) ownRegisters(s *step) []x86.Reg {
	switch {
	case s.do == program.OpTrace:
		return []x86.Reg{x86.RAX, x86.RDX, number}
	case s.do == program.OpStart && s.goroutine:
		return []x86.Reg{x86.RAX, x86.RDX, goRow}
	case s.do == program.OpStart:
		return []x86.Reg{x86.RAX, x86.RDX}
	case s.do == program.OpStop && (s.spread || s.goroutine || m.converts()):
		return []x86.Reg{x86.RAX, x86.RDX, now, spare}
	case s.do == program.OpStop:
		return []x86.Reg{x86.RAX, x86.RDX, now}
	case s.isLarge():
		return []x86.Reg{x86.RAX, x86.RDX}
	case !s.isNear():
		return []x86.Reg{x86.RAX}
	}
	return nil
}

// dead reports that the program needs neither flags nor red zone at the place.
func (m *compiler) dead() bool { return m.spot.Entry || m.spot.Return }

// redZone is the memory below the stack pointer that a function may use.
const redZone = 128

// enter tests the switch of the program, and saves what the code changes.
func (m *compiler) enter() {
	c := m.c
	if m.dead() {
		c.CmpByte(x86.Abs(m.spot.Switch), 0)
		c.JumpIf(x86.IfEqual, m.end)
		m.save(x86.RCX)
	} else {
		c.Lea(x86.RSP, x86.At(x86.RSP, -redZone))
		m.pushed += redZone
		m.save(x86.RCX)
		c.Load8(x86.RCX, x86.Abs(m.spot.Switch))
		c.JumpIfRCXZero(m.off)
		if m.when != node.Always {
			c.JumpIf(x86.Cond(m.when.Number()^1), m.off)
		}
		m.save(x86.RAX)
		c.SaveFlags()
		m.push(x86.RAX)
		resting, on := c.NewLabel(), c.NewLabel()
		if m.timing.kind == clock.Function {
			c.Jump(on) // a short jump cannot reach over code that calls a function
		} else {
			c.Part(partRare)
		}
		c.Here(m.off) // near enough for the short jump
		c.Jump(resting)
		c.Part(partFront)
		c.Here(on)
		m.off = resting
	}
	for _, r := range m.saved {
		m.save(r)
	}
}

// save pushes the program's value of a register.
func (m *compiler) save(r x86.Reg) {
	m.push(r)
	m.kept[r] = m.pushed
}

func (m *compiler) push(r x86.Reg) {
	m.c.Push(r)
	m.pushed += 8
}

// leave restores what enter has saved.
func (m *compiler) leave() {
	c := m.c
	for i := range m.saved {
		c.Pop(m.saved[len(m.saved)-1-i])
	}
	if m.dead() {
		c.Pop(x86.RCX)
	} else {
		c.Pop(x86.RAX)
		c.RestoreFlags()
		c.Pop(x86.RAX)
		c.Here(m.off)
		c.Pop(x86.RCX)
		c.Lea(x86.RSP, x86.At(x86.RSP, redZone))
	}
	c.Here(m.end)
}

// filterThreads skips the code for threads that the program is not limited to.
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

// findPlace puts the address of the thread's entry in the table into slot.
func (m *compiler) findPlace() {
	c := m.c
	c.Load32(slot, x86.FS(m.tid))
	c.Shl32(slot, 32-threadBits) // the shift removes bits that no thread number has
	if down := 32 - threadBits - m.stride; down > 0 {
		c.Shr(slot, uint8(down))
	}
	c.DoLoad(x86.Add, slot, x86.In(m.table))
}

// findSlot finds the thread's slot.
func (m *compiler) findSlot() {
	m.findPlace()
	m.c.Load(slot, x86.At(slot, 0))
	m.c.Test(slot)
	m.c.JumpIf(x86.IfEqual, m.claims)
}

// step makes the code of a step. slot has the thread's slot. The step may change all registers except slot
// and now; the last step may change slot, too.
func (m *compiler) step(s *step, last bool) {
	if s.do == program.OpAdd {
		m.add(s, func() {})
		return
	}
	if !last {
		m.push(slot)
	}
	if s.tells && s.do == program.OpStop {
		m.c.MovImm(result, 1<<64-1)
	}
	switch {
	case s.do == program.OpStart && s.goroutine:
		m.startGoroutine(s)
	case s.do == program.OpStart:
		m.start(s)
	case s.do == program.OpStop && s.goroutine:
		m.stopGoroutine(s)
	case s.do == program.OpStop:
		m.stop(s)
	case s.do == program.OpTrace:
		m.trace(s)
	}
	if !last {
		m.c.Pop(slot)
		m.pushed -= 8
	}
}

// add adds to a sum. Each change is a single instruction, so a signal handler may do the same in between.
// The code of change comes before each of these instructions.
func (m *compiler) add(s *step, change func()) {
	c := m.c
	at := x86.At(slot, int32(s.row))
	if !s.isNear() {
		c.MovImm(x86.RAX, s.row)
		at = x86.Sum(slot, x86.RAX, 0)
	}
	if s.value == 1 {
		change()
		c.Inc(at)
		m.tell(s, at)
		return
	}
	if s.isLarge() {
		m.bring(s)
	}
	change()
	c.Inc(at.Plus(sumBegun))
	change()
	if s.isLarge() {
		c.DoStore(x86.Add, at.Plus(sumValue), x86.RDX)
	} else {
		c.DoStoreImm(x86.Add, at.Plus(sumValue), int32(s.value))
	}
	change()
	c.Inc(at.Plus(sumDone))
	m.tell(s, at.Plus(sumValue))
}
