//go:build linux && amd64

package inline

import "mirador/omis/code/x86"

// Intervals are measured as by a timer of the monitor (package pa): the open intervals of a thread are a
// stack, and the stack pointer of the hits pairs starts with stops.
//
// A signal may come at any moment, and its handler may do the same to the same row. So what is written last
// makes valid what was written before, and sums are changed by single instructions. If an open interval has
// no stack pointer yet, a handler does not touch it.

// wholeStack is the stack pointer of intervals that belong to the whole thread.
const wholeStack = 1

// enterRow loads row.
func (m *compiler) enterRow(s *step) {
	m.addRow(s)
	m.c.Load(depth, x86.At(row, rowDepth))
}

// addRow loads row.
func (m *compiler) addRow(s *step) {
	c := m.c
	if s.isNear() {
		c.DoImm(x86.Add, row, int32(s.row))
	} else {
		c.MovImm(x86.RAX, s.row)
		c.Do(x86.Add, row, x86.RAX)
	}
}

// loadSP loads sp. For intervals of the whole thread it is the same everywhere.
func (m *compiler) loadSP(s *step) {
	if s.whole {
		m.c.MovImm(sp, ^uint64(wholeStack))
		return
	}
	m.c.Lea(sp, x86.At(x86.RSP, m.pushed))
	m.c.Not(sp)
}

// depth is where the open intervals of the row end. innermost is the last one before that, or the one below
// all others, which is never written.
const depth = x86.RAX

func (s *step) innermost(member int32) x86.Mem {
	return x86.Sum(row, depth, s.open-s.level+member)
}

// aside makes code that is seldom executed, and returns its label.
func (m *compiler) aside(code func()) x86.Label {
	c := m.c
	l := c.NewLabel()
	c.Part(partRare)
	c.Here(l)
	code()
	c.Part(partSteps)
	return l
}

// drop removes the innermost interval as unfinished, and continues at on.
func (m *compiler) drop(s *step, on x86.Label) {
	c := m.c
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, s.level)
	c.Store(x86.At(row, rowDepth), depth)
	c.Inc(x86.At(row, rowUnfinished))
	c.Jump(on)
}

// start opens an interval. If an interval is open with the same stack pointer or a lower one, an exception
// or longjmp has left its function: start removes it. The time is read last, so that the interval includes
// as little as possible of this code.
func (m *compiler) start(s *step) {
	c := m.c
	open, look, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	m.enterRow(s)
	m.checkLine(s, open)
	c.Here(open)
	c.Load(depth, x86.At(row, rowDepth))
	c.Here(look)
	m.loadSP(s)
	c.DoLoad(x86.Cmp, sp, s.innermost(openSP))
	c.JumpIf(x86.IfBelowOrEqual, m.aside(func() { m.drop(s, look) }))
	fresh := m.aside(func() { m.begin(s, look, done) })
	if s.oneIn > 1 {
		m.choose(s, fresh, done)
	}
	c.DoLoad(x86.Cmp, depth, x86.At(row, rowLimit))
	c.JumpIf(x86.IfAboveOrEqual, fresh)
	c.DoStoreImm(x86.Add, x86.At(row, rowDepth), s.level)
	c.Store(x86.Sum(row, depth, s.open+openSP), sp)
	c.Lea(row, x86.Sum(row, depth, s.open+openFrom))
	m.readFirst()
	c.Store(x86.At(row, 0), x86.RAX)
	c.Here(done)
}

// begin clears a row at its first hit or after a reset, and jumps to look. What a signal handler measures
// while the row is cleared is lost with the reset. At the first hit nothing needs to be cleared; then the
// thread waits for a page of memory, during which signals are likely. If the row has as many open intervals
// as it has room for, begin counts the new one as unfinished instead, and jumps to done.
func (m *compiler) begin(s *step, look, done x86.Label) {
	c := m.c
	next, none, cleared, deep := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.DoStoreImm(x86.Cmp, x86.At(row, rowLimit), 0)
	c.JumpIf(x86.IfNot, deep)
	c.DoStoreImm(x86.Cmp, x86.At(row, rowFirst), 0)
	c.JumpIf(x86.IfEqual, cleared)
	c.Here(next)
	c.Test(depth)
	c.JumpIf(x86.IfEqual, none)
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, s.level)
	c.Jump(next)
	c.Here(none)
	for member := int32(rowDepth); member <= rowTurn; member += 8 {
		c.Store(x86.At(row, member), depth) // which is 0
	}
	c.Store(s.away(), depth)
	if s.spread {
		m.clearBuckets()
	}
	c.Here(cleared)
	m.readCounter()
	c.Store(x86.At(row, rowFirst), x86.RAX)
	if s.oneIn > 1 {
		c.DoStore(x86.Add, x86.At(row, rowSeed), x86.RAX)
		m.draw(s)
	}
	c.Zero(x86.RAX)
	c.MovImm(x86.RDX, noneAway)
	c.Swap(s.away(), x86.RDX)
	c.Zero(x86.RAX) // a minimum of 0 means that there is none yet
	c.MovImm(x86.RDX, 1<<64-1)
	c.Swap(x86.At(row, rowLeast), x86.RDX)
	c.StoreImm(x86.At(row, rowLimit), maxOpen*s.level)
	c.Load(depth, x86.At(row, rowDepth))
	c.Jump(look)
	c.Here(deep)
	c.Inc(x86.At(row, rowUnfinished))
	c.Jump(done)
}

// mostBack is the most by which an interval may end before it begins, because the processor reads an
// unordered clock early or late. If an interval ends earlier than that, the counter was set back meanwhile,
// as some machines do when they are suspended; the interval is lost.
const mostBack = 1 << 20

// stop closes the interval that was opened with the same stack pointer, and removes those opened with lower
// ones, which can never end. It may also work on a row that is to be cleared.
func (m *compiler) stop(s *step) {
	c := m.c
	look, later, back, done := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	m.enterRow(s)
	if !m.late {
		m.checkLine(s, done)
	}
	c.Load(depth, x86.At(row, rowDepth))
	m.loadSP(s)
	c.Here(look)
	c.DoLoad(x86.Cmp, sp, s.innermost(openSP))
	if m.late {
		c.JumpIf(x86.IfAbove, done) // not an interval that was timed; most often, so no jump
	}
	c.JumpIf(x86.IfNot, m.aside(func() {
		c.JumpIf(x86.IfAbove, done) // the interval was opened before the program was installed
		m.drop(s, look)
	}))
	if m.late {
		m.readLate()
		m.checkLine(s, done)
		c.Load(depth, x86.At(row, rowDepth))
	}
	c.Mov(x86.RDX, now)
	c.DoLoad(x86.Sub, x86.RDX, s.innermost(openFrom))
	c.JumpIf(x86.IfBelow, m.aside(func() {
		c.DoImm(x86.Cmp, x86.RDX, -mostBack)
		c.JumpIf(x86.IfBelow, back)
		c.Zero(x86.RDX)
		c.Jump(later)
		c.Here(back)
		m.lose(s)
		c.Jump(done)
	}))
	c.Here(later)
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, s.level)
	c.Store(x86.At(row, rowDepth), depth)
	m.convert()
	m.measured(s)
	c.Here(done)
}

// measured adds the duration in RDX to the row.
func (m *compiler) measured(s *step) {
	c := m.c
	if s.tells {
		c.Mov(result, x86.RDX)
	}
	c.Inc(x86.At(row, rowBegun))
	c.Store(x86.At(row, rowLast), x86.RDX)
	m.bound(rowMost, x86.IfAbove)
	m.bound(rowLeast, x86.IfBelow)
	if s.spread {
		m.countInBucket()
	}
	c.DoStore(x86.Add, x86.At(row, rowTotal), x86.RDX)
	c.Mov(x86.RAX, x86.RDX)
	c.Mul(x86.RAX)
	c.DoStore(x86.Add, x86.At(row, rowSquares), x86.RAX)
	c.DoStore(x86.Adc, x86.At(row, rowSquares+8), x86.RDX)
	c.Inc(x86.At(row, rowDone))
}

// bound stores RDX in a member of the row if it is beyond the member. A signal handler may change the
// member meanwhile.
func (m *compiler) bound(member int32, beyond x86.Cond) {
	c := m.c
	done := c.NewLabel()
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(row, member))
	c.JumpIf(beyond, m.aside(func() {
		again, change := c.NewLabel(), c.NewLabel()
		c.Load(x86.RAX, x86.At(row, member))
		c.Here(again)
		c.Do(x86.Cmp, x86.RDX, x86.RAX)
		c.JumpIf(beyond, change)
		c.Jump(done)
		c.Here(change)
		c.Swap(x86.At(row, member), x86.RDX)
		c.JumpIf(x86.IfNot, again)
		c.Jump(done)
	}))
	c.Here(done)
}
