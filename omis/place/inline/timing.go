//go:build linux && amd64

package inline

import (
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// Code reads the time in one of three ways (package clock):
//
//   - By the counter alone. Rows are in ticks, and the monitor converts them.
//   - By the counter and the hypervisor's page. An interval begins in ticks; at its end the page converts the ticks. Rows are in nanoseconds.
//   - By the vDSO's function. All times are nanoseconds of CLOCK_MONOTONIC.
//
// The hypervisor changes its page when the machine moves to another host, is suspended, or is restored. So
// each row has the key of the line (clock.Line) by which its open intervals began. The code compares it
// with the page before an interval begins and after one has ended. If the page has another line, all open
// intervals of the row are removed and counted as lost. An interval of a goroutine has a key of its own,
// which is compared when it ends. The code itself reads the page, so this works without the monitor. But
// the monitor computes the key of the present version in advance, which saves the code a multiplication.
type timing struct {
	kind  clock.Kind
	at    uint64 // address of the page or the function in the process
	block uint64 // address in the process of the header's copy of the page
}

// The header's copy of the page, from headerClock on. The monitor first writes a version that no page
// has, and writes the right version last. The code reads the version before the factor, and the key last.
// If it reads the key of the row's line, the factor is the one of that line.
const (
	lineVersion = 0
	lineFactor  = 8
	lineKey     = 16
	lineOrigin  = 24

	noVersion = 1 << 32
)

// writeLine updates the header's copy of the page. The caller holds the lock of the process.
func (m *memory) writeLine(l clock.Line) {
	version := m.word(headerClock + lineVersion)
	if version.Load() == uint64(l.Version) {
		return
	}
	version.Store(noVersion)
	m.word(headerClock + lineKey).Store(l.Key())
	m.word(headerClock + lineOrigin).Store(l.Origin())
	m.word(headerClock + lineFactor).Store(l.Factor())
	version.Store(uint64(l.Version))
}

// whole is the length of a nanosecond in the unit of ratios.
const whole = 1 << fraction

// converts reports whether the code converts ticks to nanoseconds.
func (m *compiler) converts() bool { return m.timing.kind == clock.Page }

// readClock reads the clock into RAX at the end of an interval. The ordered clock waits until all
// instructions of the interval are complete. The processor may execute later instructions meanwhile, which
// does not lengthen the interval.
func (m *compiler) readClock() {
	c := m.c
	switch {
	case m.timing.kind == clock.Function:
		m.callClock()
		return
	case m.ordered:
		c.ReadClockOrdered()
	default:
		c.ReadClock()
	}
	c.Shl(x86.RDX, 32)
	c.Do(x86.Or, x86.RAX, x86.RDX)
}

// readFirst reads the clock into RAX at the beginning of an interval.
func (m *compiler) readFirst() {
	if m.timing.kind == clock.Function {
		m.callClock()
		return
	}
	if m.ordered {
		m.c.Fence()
	}
	m.readCounter()
}

// readCounter reads the time stamp counter into RAX. It changes RDX.
func (m *compiler) readCounter() {
	m.c.ReadClock()
	m.c.Shl(x86.RDX, 32)
	m.c.Do(x86.Or, x86.RAX, x86.RDX)
}

// readTime reads the time of a note into RAX. It changes RDX and spoiled.
func (m *compiler) readTime(spoiled x86.Reg) {
	c := m.c
	if m.timing.kind == clock.Function {
		m.callClock()
		return
	}
	m.readCounter()
	if m.converts() {
		c.MovImm(spoiled, m.timing.block)
		c.MulMem(x86.At(spoiled, lineFactor))
		c.ShlDouble(x86.RDX, x86.RAX, 64-clock.Fraction)
		c.Load(x86.RAX, x86.At(spoiled, lineOrigin))
		c.Do(x86.Add, x86.RAX, x86.RDX)
	}
}

// Registers that a C function may change, besides RAX, RDX and vector registers.
var spoiledByCalls = []x86.Reg{x86.RCX, x86.RSI, x86.RDI, x86.R8, x86.R9, x86.R10, x86.R11, x86.RBP}

const vectors, vectorSize = 16, 16

// callClock calls the vDSO's clock_gettime, and puts nanoseconds into RAX. It changes RDX.
func (m *compiler) callClock() {
	c := m.c
	for _, r := range spoiledByCalls {
		c.Push(r)
	}
	c.Mov(x86.RBP, x86.RSP)
	c.Lea(x86.RSP, x86.At(x86.RSP, -(vectors+1)*vectorSize))
	c.DoImm(x86.And, x86.RSP, -vectorSize) // required by the ABI
	for n := range int32(vectors) {
		c.StoreVector(x86.At(x86.RSP, (n+1)*vectorSize), x86.Reg(n))
	}
	c.MovImm(x86.RDI, unix.CLOCK_MONOTONIC)
	c.Mov(x86.RSI, x86.RSP)
	c.MovImm(x86.RAX, m.timing.at)
	c.Call(x86.RAX)
	for n := range int32(vectors) {
		c.LoadVector(x86.Reg(n), x86.At(x86.RSP, (n+1)*vectorSize))
	}
	c.Load(x86.RAX, x86.At(x86.RSP, 0))
	c.ImulImm(x86.RAX, int32(time.Second))
	c.DoLoad(x86.Add, x86.RAX, x86.At(x86.RSP, 8))
	c.Mov(x86.RSP, x86.RBP)
	for i := range spoiledByCalls {
		c.Pop(spoiledByCalls[len(spoiledByCalls)-1-i])
	}
}

// line is the key of the line of a row's open intervals. It is where an interval below all others would
// have its beginning.
func (s *step) line() x86.Mem { return x86.At(row, s.open-s.level+openFrom) }

// checkLine removes the open intervals of the row if the page has another line, and then jumps to changed.
// It changes RAX and RDX. At the end of intervals it puts the factor into spare.
func (m *compiler) checkLine(s *step, changed x86.Label) {
	if !m.converts() {
		return
	}
	c := m.c
	ends := s.do == program.OpStop
	compare, same := c.NewLabel(), c.NewLabel()
	c.MovImm(x86.RDX, m.timing.at)
	c.Load32(x86.RAX, x86.At(x86.RDX, clock.PageVersion))
	c.MovImm(x86.RDX, m.timing.block)
	c.DoLoad(x86.Cmp, x86.RAX, x86.At(x86.RDX, lineVersion))
	c.JumpIf(x86.IfNot, m.aside(func() { m.readLine(ends, compare) }))
	if ends {
		c.Load(spare, x86.At(x86.RDX, lineFactor))
	}
	c.Load(x86.RAX, x86.At(x86.RDX, lineKey))
	c.Here(compare)
	c.DoLoad(x86.Cmp, x86.RAX, s.line())
	c.JumpIf(x86.IfNot, m.aside(func() { m.changeLine(s, same, changed) }))
	c.Here(same)
}

// readLine computes the key of the page's line into RAX, and its factor into spare if factor is true, and
// continues at on.
func (m *compiler) readLine(factor bool, on x86.Label) {
	c := m.c
	if !factor {
		c.Push(spare)
	}
	m.computeLine()
	if !factor {
		c.Pop(spare)
	}
	c.Jump(on)
}

// loadLine loads the key of the page's line into RDX, and its factor into RAX.
func (m *compiler) loadLine() {
	c := m.c
	loaded := c.NewLabel()
	c.MovImm(x86.RDX, m.timing.at)
	c.Load32(x86.RAX, x86.At(x86.RDX, clock.PageVersion))
	c.MovImm(x86.RDX, m.timing.block)
	c.DoLoad(x86.Cmp, x86.RAX, x86.At(x86.RDX, lineVersion))
	c.JumpIf(x86.IfNot, m.aside(func() {
		c.Push(spare)
		m.computeLine()
		c.Mov(x86.RDX, x86.RAX)
		c.Mov(x86.RAX, spare)
		c.Pop(spare)
		c.Jump(loaded)
	}))
	c.Load(x86.RAX, x86.At(x86.RDX, lineFactor))
	c.Load(x86.RDX, x86.At(x86.RDX, lineKey))
	c.Here(loaded)
}

// computeLine computes the key of the page's line into RAX, and its factor into spare (clock.Line.Key).
// Like the kernel it waits while the hypervisor changes the page. It changes RDX.
func (m *compiler) computeLine() {
	c := m.c
	const page, version = x86.RSI, x86.R8
	saved := []x86.Reg{x86.RCX, page, version}
	for _, r := range saved {
		c.Push(r)
	}
	again := c.NewLabel()
	c.MovImm(page, m.timing.at)
	c.Here(again)
	c.Load32(version, x86.At(page, clock.PageVersion))
	c.Load32(spare, x86.At(page, clock.PageFactor))
	c.LoadSigned8(x86.RCX, x86.At(page, clock.PageShift))
	c.DoImm(x86.Add, x86.RCX, clock.Fraction-32)
	c.ShlByCL(spare)
	c.Load(x86.RAX, x86.At(page, clock.PageTicks))
	c.Mul(spare)
	c.ShlDouble(x86.RDX, x86.RAX, 64-clock.Fraction)
	c.Load(x86.RAX, x86.At(page, clock.PageTime))
	c.Do(x86.Sub, x86.RAX, x86.RDX)
	c.MovImm(x86.RDX, clock.Spread)
	c.Imul(x86.RDX, spare)
	c.Do(x86.Add, x86.RAX, x86.RDX)
	c.DoLoad32(x86.Cmp, version, x86.At(page, clock.PageVersion))
	c.JumpIf(x86.IfNot, again)
	c.DoImm32(x86.And, version, 1)
	c.JumpIf(x86.IfNot, again)
	for i := range saved {
		c.Pop(saved[len(saved)-1-i])
	}
}

// changeLine gives the row the line whose key is in RAX. It jumps to same if that is the same line,
// computed again. Otherwise all open intervals are lost.
func (m *compiler) changeLine(s *step, same, changed x86.Label) {
	c := m.c
	next := c.NewLabel()
	c.Load(x86.RDX, s.line())
	c.Store(s.line(), x86.RAX)
	c.Do(x86.Sub, x86.RDX, x86.RAX)
	c.DoImm(x86.Add, x86.RDX, clock.Tolerance)
	c.DoImm(x86.Cmp, x86.RDX, 2*clock.Tolerance)
	c.JumpIf(x86.IfBelowOrEqual, same)
	c.Load(depth, x86.At(row, rowDepth))
	c.Here(next)
	c.Test(depth)
	c.JumpIf(x86.IfEqual, changed)
	m.lose(s)
	c.Jump(next)
}

// lose removes the innermost interval, and counts it as lost. It changes RDX.
func (m *compiler) lose(s *step) {
	c := m.c
	c.StoreImm(s.innermost(openSP), 0)
	c.DoImm(x86.Sub, depth, s.level)
	c.Store(x86.At(row, rowDepth), depth)
	c.Inc(x86.At(row, rowUnfinished))
	c.MovImm(x86.RDX, s.lost)
	c.LockedInc(x86.At(x86.RDX, 0))
}

// convert converts the ticks in RDX to nanoseconds, by the factor in spare. It changes RAX.
func (m *compiler) convert() {
	if !m.converts() {
		return
	}
	m.c.Mov(x86.RAX, x86.RDX)
	m.c.Mul(spare)
	m.c.ShlDouble(x86.RDX, x86.RAX, 64-clock.Fraction)
}

// useClock chooses the clock of a process. If intervals were measured already, it keeps their clock.
func (t *target) useClock() {
	c, err := t.placer.now()
	used := clock.Kind(t.memory.word(headerTime).Load())
	switch {
	case err != nil:
		t.untimed = err
	case used != 0 && used != c.Kind:
		t.untimed = omis.Errorf(omis.UnsupportedService, "durations in this process were measured by %v so far, and the kernel's clock has changed: it is %s now", used, c.Source)
	default:
		used = c.Kind
		t.clock = c
		t.memory.word(headerTime).Store(uint64(used))
	}
	t.unit = used
	t.followLine()
}

// followLine updates what the memory has of the clock's page.
func (t *target) followLine() {
	if t.unit != clock.Page || t.clock.Line == nil {
		return
	}
	if l, err := t.clock.Line(); err == nil {
		t.memory.writeLine(l)
	}
}

// timing finds the clock in the process, for programs that measure time.
func (t *target) timing() (r timing, err error) {
	if t.untimed != nil {
		return r, t.untimed
	}
	r = timing{kind: t.clock.Kind, block: t.memory.base + headerClock}
	if t.clock.Locate != nil {
		r.at, err = t.clock.Locate(t.proc.PID)
	}
	return r, err
}

// tick returns the length of the unit of a process's intervals, in units of 2⁻⁴⁰ nanoseconds.
func (t *target) tick() uint64 {
	if t.unit == clock.Page || t.unit == clock.Function {
		return whole
	}
	return t.placer.clock.tick()
}

// converter converts times of notes in a process to another clock.
func (t *target) converter(other func() int64) func(uint64) int64 {
	var now func() uint64
	switch {
	case t.unit == clock.Function:
		now = func() uint64 { return uint64(monotonic()) }
	case t.unit == clock.Page && t.clock.Line != nil:
		now = func() uint64 {
			l, err := t.clock.Line()
			if err != nil {
				return 0
			}
			return l.At(clock.Ticks())
		}
	default:
		return t.placer.clock.converter(other)
	}
	there, here := uint64(0), int64(0)
	least := ^uint64(0)
	for range 16 {
		before := now()
		at := other()
		if took := now() - before; took < least {
			least, there, here = took, before+took/2, at
		}
	}
	return func(at uint64) int64 { return here + int64(at-there) }
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock exists
	return t.Nano()
}
