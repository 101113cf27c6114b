//go:build linux && amd64

package inline

import (
	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// If only one in n intervals is timed, the others take little more than counting. As with a timer of the
// monitor (package pa), one of each n consecutive intervals is drawn at random when the first of them
// begins. At the end, the clock is read only if an interval with the same stack pointer is open.

// sampled returns how many intervals there are for one that a program times. It returns 1 if the program
// times all intervals of some timer, so that it reads the clock at each hit.
func sampled(p program.Program) int64 {
	var least int64
	for _, op := range p {
		if op.Times() && (least == 0 || op.OneIn < least) {
			least = max(op.OneIn, 1)
		}
	}
	return least
}

// choose counts an interval that begins, and jumps to done if it is not timed. It jumps to fresh if the row
// must be cleared first. If a signal handler does the same in between, one interval more or less may be
// timed, but the counts are right.
func (m *compiler) choose(s *step, fresh, done x86.Label) {
	c := m.c
	c.DoStoreImm(x86.Cmp, x86.At(row, rowLimit), 0)
	c.JumpIf(x86.IfEqual, fresh)
	c.Inc(x86.At(row, rowPassed))
	c.Load(x86.RAX, x86.At(row, rowNext))
	c.DoLoad(x86.Cmp, x86.RAX, x86.At(row, rowPassed))
	c.JumpIf(x86.IfAbove, done)
	m.draw(s)
	c.Load(depth, x86.At(row, rowDepth))
	m.loadSP(s)
}

// multiplier makes the next random number from the one before; its upper bits are random enough (Knuth's
// MMIX).
const multiplier = 6364136223846793005

// draw chooses which interval of the next n is timed.
func (m *compiler) draw(s *step) {
	c := m.c
	c.MovImm(x86.RDX, multiplier)
	c.Load(x86.RAX, x86.At(row, rowSeed))
	c.Mul(x86.RDX)
	c.DoImm(x86.Add, x86.RAX, 1)
	c.Store(x86.At(row, rowSeed), x86.RAX)
	c.MovImm(x86.RDX, uint64(s.oneIn))
	c.Mul(x86.RDX) // RDX: less than that
	c.Load(x86.RAX, x86.At(row, rowTurn))
	c.Lea(x86.RDX, x86.Sum(x86.RDX, x86.RAX, 1))
	c.Store(x86.At(row, rowNext), x86.RDX)
	c.DoStoreImm(x86.Add, x86.At(row, rowTurn), int32(s.oneIn))
}

// readLate reads the clock into now after an open interval was found. It changes the registers for that,
// and loads them again.
func (m *compiler) readLate() {
	c := m.c
	c.Mov(now, row)
	m.readClock()
	c.Mov(row, now)
	c.Mov(now, x86.RAX)
}
