//go:build linux && amd64

package inline

import (
	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// Where one interval in so many is timed, the others take hardly more than to be counted:
// of every so many one is chosen by lot, as a timer of the monitor does (package pa), when
// the one before it begins. At the other end the clock is read only where an interval is
// open at the same place of the stack.

// sampled is how many intervals a program times one of; 1: it times all of some timer, and
// so reads the clock each time.
func sampled(p program.Program) int64 {
	var least int64
	for _, op := range p {
		if op.Times() && (least == 0 || op.OneIn < least) {
			least = max(op.OneIn, 1)
		}
	}
	return least
}

// choose counts an interval that begins, and goes on at done where it is not to be timed.
// A row that is fresh is to be begun before that. What a handler of a signal does in
// between may have one more be timed, or none in a turn; it is never miscounted.
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
	m.loadSP()
}

// multiplier makes a number of the one before it in which the upper bits look like chance
// (Knuth's MMIX).
const multiplier = 6364136223846793005

// draw chooses the interval of the next turn that is to be timed.
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

// readLate reads the clock into now, where an interval is known to end. It spoils what it
// reads from, and has it again.
func (m *compiler) readLate() {
	c := m.c
	c.Mov(now, row)
	m.readClock()
	c.Mov(row, now)
	c.Mov(now, x86.RAX)
}
