//go:build linux && amd64

package inline

import (
	"math/bits"

	"mirador/omis/code/x86"
	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// A goroutine may return from a function on another thread than it was called on, and the runtime may have
// moved its stack meanwhile. So open intervals of functions in Go belong to goroutines: a table has a row
// for each goroutine and timer, and rows are never removed from it. Like the row of a thread, such a row
// has a stack of open intervals. The distance of the stack pointer from the upper end of the goroutine's
// stack pairs starts with stops. A row needs no lock: one thread at a time runs a goroutine, and the
// scheduler does not interrupt a goroutine in code that the runtime does not know.
//
// The duration is added to the row of the thread on which the interval ends. That row also has the number
// of intervals that began on the thread, less the number that ended there.
//
// The runtime reuses the descriptors of goroutines, and never frees them. A new goroutine begins at the
// upper end of its stack, so its first interval removes the intervals that the former goroutine has left open.
//
// An interval contains two values that decide, at its end, whether it counts: the number of resets before it
// began, and the key of the hypervisor's page at that time (timing.go). Other intervals have these values in the
// row of the thread. But a goroutine may end an interval on another thread than the one where it began it.

// A row of the table. Its open intervals are behind the table. Intervals of one depth are side by side for
// all rows, so that only deep recursion takes more memory.
const (
	goKey     = 0 // address of the descriptor, and in the upper bits the timer's entry of the directory plus 1; 0: the row is free
	goDepth   = 8 // a distance, as rowDepth
	goRowSize = 1 << goRowShift

	goRowShift = 5
	goKeyBits  = 48 // the number of bits of an address
)

// An open interval of a goroutine has these words after openSP and openFrom.
const (
	openReset = 16 // entryReset when the interval began
	openLine  = 24 // key of the line by which it began
)

// goReach is the number of rows that a search looks at. If none is found, the interval counts as lost. The
// table has that many more rows than the hash can select.
const goReach = 64

// goLevel is the distance between two open intervals of a goroutine.
func (s shape) goLevel() int { return (s.goroutines + goReach) * goRowSize }

// goAt returns the offset of the table.
func (s shape) goAt() int { return wholePages(s.ledgerAt() + s.ledger*recordSize) }

// goSize returns the size of the table of goroutines, including their open intervals.
func (s shape) goSize() int { return wholePages(s.goLevel() * (1 + maxOpen)) }

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// away is the word of a timer's row of a thread that says how many more intervals of goroutines began on
// the thread than ended there. It is where an interval below all others would have its stack pointer.
func (s *step) away() x86.Mem { return x86.At(row, s.open-s.level+openSP) }

func (m *memory) away(slot int, c cell) int {
	return m.rowAt(slot, c) + c.open() - c.kind.depth() + openSP
}

// noneAway is the value of that word for equal numbers. With any number of intervals added, it stays below
// the inverted stack pointers of programs.
const noneAway = 1 << 62

// Registers, besides row, RAX and RDX: the goroutine's row of the timer.
const goRow = x86.RDI

// golden spreads keys over the table (Knuth's multiplicative hash).
const golden = 0x9e3779b97f4a7c15

// goKeyOf returns the part of a row's key that is not the address of the goroutine.
func (s *step) goKeyOf() uint64 { return uint64(s.entry+1) << goKeyBits }

// findGoroutine finds the goroutine's row of the timer. It puts its address into goRow, the end of its open
// intervals into depth, and the distance of the stack pointer, or of a frame (node.GoCode.Marked), from the end of the stack into sp. If there
// is no row, it jumps to none; with none equal to lost it makes a row, and jumps to lost if it cannot.
func (m *compiler) findGoroutine(s *step, none, lost x86.Label) {
	c := m.c
	have, search := c.NewLabel(), c.NewLabel()
	c.Load(x86.RAX, x86.FS(m.code.G))
	c.Test(x86.RAX)
	c.JumpIf(x86.IfEqual, lost)
	c.MovImm(x86.RDX, s.goKeyOf())
	c.Do(x86.Add, x86.RDX, x86.RAX)
	c.MovImm(goRow, golden)
	c.Imul(goRow, x86.RDX)
	c.Shr(goRow, uint8(64-bits.Len(uint(m.goroutines-1))))
	c.Shl(goRow, goRowShift)
	c.DoLoad(x86.Add, goRow, x86.In(m.goTable))
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(goRow, goKey))
	c.JumpIf(x86.IfNot, search)
	c.Here(have)
	c.Load(sp, x86.At(x86.RAX, m.code.StackEnd))
	if m.code.Marked {
		c.DoLoad(x86.Sub, sp, x86.At(x86.RSP, m.pushed-m.kept[x86.RAX]))
	} else {
		c.Do(x86.Sub, sp, x86.RSP)
		c.DoImm(x86.Sub, sp, m.pushed)
	}
	c.Load(depth, x86.At(goRow, goDepth))
	c.Part(partRare)
	c.Here(search)
	m.searchGoroutine(have, none, lost)
	c.Part(partSteps)
}

// searchGoroutine searches rows from goRow on. RDX is the key, RAX the goroutine.
func (m *compiler) searchGoroutine(have, none, lost x86.Label) {
	c := m.c
	look, next, empty, found := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	restore := func() {
		c.Pop(x86.RCX)
		c.Pop(x86.RAX)
	}
	c.Push(x86.RAX)
	c.Push(x86.RCX)
	c.MovImm(x86.RCX, goReach)
	c.Here(look)
	c.DoStoreImm(x86.Cmp, x86.At(goRow, goKey), 0)
	c.JumpIf(x86.IfEqual, empty)
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(goRow, goKey))
	c.JumpIf(x86.IfEqual, found)
	c.Here(next)
	c.DoImm(x86.Add, goRow, goRowSize)
	c.DecReg32(x86.RCX)
	c.JumpIf(x86.IfNot, look)
	restore()
	c.Jump(lost)
	c.Here(empty)
	if none == lost {
		c.Zero(x86.RAX)
		c.LockedSwap(x86.At(goRow, goKey), x86.RDX)
		c.JumpIf(x86.IfEqual, found)
		c.Jump(next) // another thread has taken the row for another goroutine
	} else {
		restore()
		c.Jump(none)
	}
	c.Here(found)
	restore()
	c.Jump(have)
}

// enterThreadRow loads row, and begins the row if that is due.
func (m *compiler) enterThreadRow(s *step, look, done x86.Label) (fresh x86.Label) {
	c := m.c
	m.addRow(s)
	c.Here(look)
	c.DoStoreImm(x86.Cmp, x86.At(row, rowLimit), 0)
	fresh = m.aside(func() {
		c.Load(depth, x86.At(row, rowDepth))
		m.begin(s, look, done)
	})
	c.JumpIf(x86.IfEqual, fresh)
	return fresh
}

// goInnermost returns a member of the goroutine's innermost open interval.
func goInnermost(member int32) x86.Mem { return x86.Sum(goRow, depth, member) }

// popGoroutine removes the innermost interval from the goroutine's row.
func (m *compiler) popGoroutine() {
	c := m.c
	c.StoreImm(goInnermost(openSP), 0)
	c.DoImm(x86.Sub, depth, int32(m.goLevel()))
	c.Store(x86.At(goRow, goDepth), depth)
}

// dropGoroutine removes the innermost interval as unfinished, and continues at on. An interval that was
// opened before the last reset does not count.
func (m *compiler) dropGoroutine(s *step, on x86.Label) {
	c := m.c
	stale := c.NewLabel()
	c.Push(x86.RDX)
	c.MovImm(x86.RDX, s.reset)
	c.Load(x86.RDX, x86.At(x86.RDX, 0))
	c.DoLoad(x86.Cmp, x86.RDX, goInnermost(openReset))
	c.JumpIf(x86.IfNot, stale)
	c.Inc(x86.At(row, rowUnfinished))
	c.DoStoreImm(x86.Sub, s.away(), 1)
	c.Here(stale)
	m.popGoroutine()
	c.Pop(x86.RDX)
	c.Jump(on)
}

// startGoroutine is start for a function in Go.
func (m *compiler) startGoroutine(s *step) {
	c := m.c
	look, again, push, done := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	fresh := m.enterThreadRow(s, look, done)
	if s.oneIn > 1 {
		m.choose(s, fresh, done)
	}
	lost := m.aside(func() {
		c.MovImm(x86.RAX, s.lost)
		c.LockedInc(x86.At(x86.RAX, 0))
		c.Jump(done)
	})
	m.findGoroutine(s, lost, lost)
	c.Here(again)
	c.Test(depth)
	c.JumpIf(x86.IfEqual, push)
	c.DoLoad(x86.Cmp, sp, goInnermost(openSP))
	c.JumpIf(x86.IfBelowOrEqual, m.aside(func() { m.dropGoroutine(s, again) }))
	c.DoImm(x86.Cmp, depth, int32(maxOpen*m.goLevel()))
	c.JumpIf(x86.IfAboveOrEqual, m.aside(func() {
		c.Inc(x86.At(row, rowUnfinished))
		c.Jump(done)
	}))
	c.Here(push)
	c.DoStoreImm(x86.Add, x86.At(goRow, goDepth), int32(m.goLevel()))
	c.Inc(s.away())
	c.Lea(goRow, x86.Sum(goRow, depth, int32(m.goLevel())))
	c.Store(x86.At(goRow, openSP), sp)
	c.MovImm(x86.RAX, s.reset)
	c.Load(x86.RAX, x86.At(x86.RAX, 0))
	c.Store(x86.At(goRow, openReset), x86.RAX)
	if m.converts() {
		m.loadLine()
		c.Store(x86.At(goRow, openLine), x86.RDX)
	}
	m.readFirst()
	c.Store(x86.At(goRow, openFrom), x86.RAX)
	c.Here(done)
}

// stopGoroutine is stop for a function in Go. An interval that was opened before the last reset does not
// count.
func (m *compiler) stopGoroutine(s *step) {
	c := m.c
	look, again, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	m.enterThreadRow(s, look, done)
	m.findGoroutine(s, done, m.aside(func() { c.Jump(done) }))
	c.Here(again)
	c.Test(depth)
	c.JumpIf(x86.IfEqual, done)
	c.DoLoad(x86.Cmp, sp, goInnermost(openSP))
	c.JumpIf(x86.IfNot, m.aside(func() {
		c.JumpIf(x86.IfAbove, done) // the interval was opened before the program was installed
		m.dropGoroutine(s, again)
	}))
	if m.late {
		m.readLate()
		c.Load(depth, x86.At(goRow, goDepth))
	}
	m.popGoroutine()
	c.Lea(goRow, x86.Sum(goRow, depth, int32(m.goLevel())))
	c.MovImm(x86.RDX, s.reset)
	c.Load(x86.RDX, x86.At(x86.RDX, 0))
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(goRow, openReset))
	c.JumpIf(x86.IfNot, done)
	c.DoStoreImm(x86.Sub, s.away(), 1)
	m.tookGoroutine(m.aside(func() {
		c.Inc(x86.At(row, rowUnfinished))
		c.MovImm(x86.RDX, s.lost)
		c.LockedInc(x86.At(x86.RDX, 0))
		c.Jump(done)
	}))
	m.measured(s)
	c.Here(done)
}

// tookGoroutine puts the duration of the interval at goRow, which ends now, into RDX. It jumps to lost if
// the counter was set back, or if the page has another line than at the beginning.
func (m *compiler) tookGoroutine(lost x86.Label) {
	c := m.c
	later, same := c.NewLabel(), c.NewLabel()
	c.DoLoad(x86.Sub, now, x86.At(goRow, openFrom))
	c.JumpIf(x86.IfBelow, m.aside(func() {
		c.DoImm(x86.Cmp, now, -mostBack)
		c.JumpIf(x86.IfBelow, lost)
		c.Zero(now)
		c.Jump(later)
	}))
	c.Here(later)
	if !m.converts() {
		c.Mov(x86.RDX, now)
		return
	}
	m.loadLine()
	c.DoLoad(x86.Cmp, x86.RDX, x86.At(goRow, openLine))
	c.JumpIf(x86.IfNot, m.aside(func() {
		c.DoLoad(x86.Sub, x86.RDX, x86.At(goRow, openLine))
		c.DoImm(x86.Add, x86.RDX, clock.Tolerance)
		c.DoImm(x86.Cmp, x86.RDX, 2*clock.Tolerance)
		c.JumpIf(x86.IfBelowOrEqual, same)
		c.Jump(lost)
	}))
	c.Here(same)
	c.Mul(now)
	c.ShlDouble(x86.RDX, x86.RAX, 64-clock.Fraction)
}

// goCodes returns for each program that measures time whether its place is in Go code. It refuses a place
// if goroutines cannot be identified there, and if the clock is a function of the vDSO, which may need more
// stack than a goroutine has.
func (p *Placer) goCodes(list []program.Placing, errs []error) []node.GoCode {
	c, _ := p.now()
	codes := make([]node.GoCode, len(list))
	var at []int
	var addrs []uint64
	for i, err := range errs {
		if err == nil && (times(list[i].Program) || list[i].Program.RecordsStack() || list[i].Program.Traces() && c.Kind == clock.Function) {
			at, addrs = append(at, i), append(addrs, list[i].Watch.Addr)
		}
	}
	if len(addrs) == 0 {
		return codes
	}
	for k, code := range p.patcher.GoCode(list[0].Watch.Proc, addrs) {
		i := at[k]
		codes[i] = code
		switch {
		case !code.In:
		case c.Kind == clock.Function:
			errs[i] = &program.Refusal{Why: "the time can only be read by a function of the vDSO here, for which the stacks of goroutines are too small"}
		case code.Unknown != nil && (times(list[i].Program) || list[i].Program.RecordsStack()):
			errs[i] = &program.Refusal{Why: Indistinct(code.Unknown)}
		}
	}
	return codes
}

// Indistinct returns why a function of Go is not timed in a program that does not show where its threads keep their
// goroutines.
func Indistinct(err error) string {
	return "the function is of Go, and goroutines cannot be told apart: " + err.Error()
}

// goroutineFirst returns the step that records the goroutine, to come before one that records the stack pointer.
func (s step) goroutineFirst() step {
	s.mark, s.ofGoroutine = program.MarkOfGoroutine(s.mark), true
	return s
}

// bringGoroutine puts the address of the goroutine's descriptor into RDX, 0 if the thread runs none.
func bringGoroutine(m *compiler) { m.c.Load(x86.RDX, x86.FS(m.code.G)) }

// bringDistance puts the distance of the stack pointer, or of a frame (node.GoCode.Marked), from the upper end of the
// goroutine's stack into RDX.
func bringDistance(m *compiler) {
	c := m.c
	done := c.NewLabel()
	c.Load(x86.RAX, x86.FS(m.code.G))
	if m.code.Marked {
		c.Load(x86.RDX, x86.At(x86.RSP, m.pushed-m.kept[x86.RAX]))
	} else {
		c.Lea(x86.RDX, x86.At(x86.RSP, m.pushed))
	}
	c.Test(x86.RAX)
	c.JumpIf(x86.IfEqual, done)
	c.DoLoad(x86.Sub, x86.RDX, x86.At(x86.RAX, m.code.StackEnd))
	c.Here(done)
}
