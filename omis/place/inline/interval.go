//go:build linux && amd64

package inline

import "mirador/omis/place/inline/x86"

// Intervals are kept as a timer of the monitor keeps them (package pa): a stack of
// those that are open, which pairs starts and stops by the stack pointer.
//
// A signal may come at any instant, and its handler do the same to the same row. So
// what is written last makes what was written before it valid, and what is added up is
// added by single instructions. An open interval whose stack pointer is not written yet
// is left alone by whoever comes in between.

// enterRow puts the address of the thread's row into row.
func (m *compiler) enterRow(s *step) {
	c := m.c
	if s.row == uint64(int32(s.row)) {
		c.Lea(row, x86.At(slot, int32(s.row)))
		return
	}
	c.MovImm(row, s.row)
	c.Do(x86.Add, row, slot)
}

// depth is RAX: where the open intervals of the row end. innermost is the one before
// that, or what is below all of them, and never written.
const depth = x86.RAX

func (s *step) innermost(member int32) x86.Mem {
	return x86.Sum(row, depth, s.open-depthSize+member)
}

// place loads depth, and the stack pointer as the program has it, inverted, into RDX.
func (m *compiler) place() {
	c := m.c
	c.Lea(x86.RDX, x86.At(x86.RSP, m.pushed))
	c.Load(depth, x86.At(row, rowDepth))
	c.Not(x86.RDX)
}

// drop makes the code, apart, that takes the innermost interval off as unfinished, and
// goes on at a label.
func (m *compiler) drop(s *step, on x86.Label) (dropping x86.Label) {
	c := m.c
	dropping = c.NewLabel()
	c.Part(partRare)
	c.Here(dropping)
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, depthSize)
	c.Store(x86.At(row, rowDepth), depth)
	c.Inc(x86.At(row, rowUnfinished))
	c.Jump(on)
	c.Part(partSteps)
	return dropping
}

// start opens an interval. A frame that is still open although the stack is back at
// its place, or above, was left by an exception or a longjmp. The time is taken last,
// so that as little as possible of the program itself is measured.
func (m *compiler) start(s *step) {
	c := m.c
	begun, look, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	m.enterRow(s)
	c.DoStoreImm(x86.Cmp, x86.At(row, rowState), rowCounts)
	c.JumpIf(x86.IfNot, m.begin(s, begun))
	c.Here(begun)
	m.place()
	c.Here(look)
	c.DoLoad(x86.Cmp, x86.RDX, s.innermost(openSP))
	c.JumpIf(x86.IfBelowOrEqual, m.drop(s, look))
	c.DoImm(x86.Cmp, depth, maxOpen*depthSize)
	c.JumpIf(x86.IfAboveOrEqual, m.tooDeep(done))
	c.DoStoreImm(x86.Add, x86.At(row, rowDepth), depthSize)
	c.Store(x86.Sum(row, depth, s.open+openSP), x86.RDX)
	c.Lea(row, x86.Sum(row, depth, s.open+openFrom))
	if m.ordered {
		c.Fence()
	}
	c.ReadClock()
	c.Shl(x86.RDX, 32)
	c.Do(x86.Or, x86.RAX, x86.RDX)
	c.Store(x86.At(row, 0), x86.RAX)
	c.Here(done)
}

func (m *compiler) tooDeep(done x86.Label) (label x86.Label) {
	c := m.c
	label = c.NewLabel()
	c.Part(partRare)
	c.Here(label)
	c.Inc(x86.At(row, rowUnfinished))
	c.Jump(done)
	c.Part(partSteps)
	return label
}

// begin makes the code, apart, that begins a row, at the first hit of all or after a
// reset. What a handler of a signal measures while it clears the row goes with the reset.
func (m *compiler) begin(s *step, on x86.Label) (label x86.Label) {
	c := m.c
	label = c.NewLabel()
	next, none, cleared := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.Part(partRare)
	c.Here(label)
	c.ReadClock()
	c.Shl(x86.RDX, 32)
	c.Do(x86.Or, x86.RAX, x86.RDX)
	c.Store(x86.At(row, rowFirst), x86.RAX)
	c.DoStoreImm(x86.Cmp, x86.At(row, rowState), rowStale)
	c.JumpIf(x86.IfNot, cleared)
	c.Load(depth, x86.At(row, rowDepth))
	c.Here(next)
	c.Test(depth)
	c.JumpIf(x86.IfEqual, none)
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, depthSize)
	c.Jump(next)
	c.Here(none)
	for member := int32(rowDepth); member <= rowDone; member += 8 {
		c.Store(x86.At(row, member), depth) // which is 0
	}
	c.Here(cleared)
	c.StoreImm(x86.At(row, rowState), rowCounts)
	c.Jump(on)
	c.Part(partSteps)
	return label
}

// stop closes the interval that was opened at the same place of the stack, and drops
// those further down, which can never end.
func (m *compiler) stop(s *step) {
	c := m.c
	look, done, later := c.NewLabel(), c.NewLabel(), c.NewLabel()
	m.enterRow(s)
	c.DoStoreImm(x86.Cmp, x86.At(row, rowState), rowCounts)
	c.JumpIf(x86.IfNot, done)
	m.place()
	c.Here(look)
	c.DoLoad(x86.Cmp, x86.RDX, s.innermost(openSP))
	c.JumpIf(x86.IfBelow, m.drop(s, look))
	c.JumpIf(x86.IfNot, done) // its start was not seen
	c.Mov(x86.RDX, now)
	c.DoLoad(x86.Sub, x86.RDX, s.innermost(openFrom))
	c.JumpIf(x86.IfAboveOrEqual, later)
	c.Zero(x86.RDX)
	c.Here(later)
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, depthSize)
	c.Store(x86.At(row, rowDepth), depth)
	m.measured()
	c.Here(done)
}

// measured adds the duration in RDX to the row.
func (m *compiler) measured() {
	c := m.c
	c.Inc(x86.At(row, rowBegun))
	c.Store(x86.At(row, rowLast), x86.RDX)
	m.raise(rowMost)
	c.Not(x86.RDX)
	m.raise(rowLeast)
	c.Not(x86.RDX)
	c.DoStore(x86.Add, x86.At(row, rowTotal), x86.RDX)
	c.DoStoreImm(x86.Adc, x86.At(row, rowTotal+8), 0)
	c.Mov(x86.RAX, x86.RDX)
	c.Mul(x86.RAX)
	c.DoStore(x86.Add, x86.At(row, rowSquares), x86.RAX)
	c.DoStore(x86.Adc, x86.At(row, rowSquares+8), x86.RDX)
	c.Inc(x86.At(row, rowDone))
}

// raise makes a member of the row RDX if that is greater, also where a handler of a
// signal raises it in between.
func (m *compiler) raise(member int32) {
	c := m.c
	greater, done := c.NewLabel(), c.NewLabel()
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(row, member))
	c.JumpIf(x86.IfAbove, greater)
	c.Here(done)
	c.Part(partRare)
	c.Here(greater)
	c.Load(x86.RAX, x86.At(row, member))
	again := c.NewLabel()
	c.Here(again)
	c.Do(x86.Cmp, x86.RDX, x86.RAX)
	c.JumpIf(x86.IfBelowOrEqual, done)
	c.Swap(x86.At(row, member), x86.RDX)
	c.JumpIf(x86.IfNot, again)
	c.Jump(done)
	c.Part(partSteps)
}
