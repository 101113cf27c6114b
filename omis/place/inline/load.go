//go:build linux && amd64

package inline

import (
	"mirador/omis/code/x86"
	"mirador/omis/node"
	"mirador/omis/program"
)

// arguments has the registers of node.Args.
var arguments = [...]x86.Reg{x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9}

// bring puts the value of a step into RDX.
func (m *compiler) bring(s *step) {
	c, l := m.c, s.load
	switch {
	case !l.IsLoaded():
		c.MovImm(x86.RDX, uint64(s.value))
		return
	case l.From == program.FromStep:
		c.Mov(x86.RDX, result)
		return
	case s.ofGoroutine:
		bringGoroutine(m)
		return
	case l.From == program.FromStack && m.code.In:
		bringDistance(m)
		return
	case l.From == program.FromStack:
		c.Lea(x86.RDX, x86.At(x86.RSP, m.pushed))
		return
	case l.From == program.FromProduct:
		bringProduct(m)
	default:
		m.argument(l.Arg)
	}
	if l.Bytes == 4 {
		c.SignExtend(x86.RDX)
	}
	if l.Amount {
		amount := c.NewLabel()
		c.Test(x86.RDX)
		c.JumpIf(x86.IfNotNegative, amount)
		c.Zero(x86.RDX)
		c.Here(amount)
	}
}

// argument puts an argument of the function into RDX.
func (m *compiler) argument(n uint8) {
	from := arguments[n]
	if at, saved := m.kept[from]; saved { // the code may have changed the register since
		m.c.Load(x86.RDX, x86.At(x86.RSP, m.pushed-at))
	} else {
		m.c.Mov(x86.RDX, from)
	}
}

// bringProduct puts program.Product into RDX.
func bringProduct(m *compiler) {
	c := m.c
	none, done := c.NewLabel(), c.NewLabel()
	m.argument(0)
	c.Test(x86.RDX)
	c.JumpIf(x86.IfNegative, none)
	if at, saved := m.kept[arguments[1]]; saved {
		c.ImulMem(x86.RDX, x86.At(x86.RSP, m.pushed-at))
	} else {
		c.Imul(x86.RDX, arguments[1])
	}
	c.JumpIf(x86.IfOverflow, none)
	c.Test(x86.RDX)
	c.JumpIf(x86.IfNotNegative, done)
	c.Here(none)
	c.MovImm(x86.RDX, ^uint64(0))
	c.Here(done)
}

// noResult is the value of result if a step has measured nothing.
const noResult = -1

// tell puts a sum into result, for the next step.
func (m *compiler) tell(s *step, sum x86.Mem) {
	if s.tells {
		m.c.Load(result, sum)
	}
}

// reads returns the arguments of the function that a program loads.
func reads(p program.Program) (set node.Arguments) {
	for _, op := range p {
		switch op.Load.From {
		case program.FromArgument:
			set |= 1 << op.Load.Arg
		case program.FromProduct:
			set |= 0b11
		}
	}
	return set
}

// canLoad reports why a program cannot load what its steps require.
func canLoad(p program.Program) error {
	for _, op := range p {
		if !loadable(op.Load) {
			return &program.Refusal{Why: "code in a program loads arguments of functions, of 32 or 64 bits with a sign, and nothing else"}
		}
	}
	return nil
}

func loadable(l program.Load) bool {
	switch l.From {
	case program.FromArgument:
		return int(l.Arg) < len(arguments) && l.Signed && l.Bytes >= 4
	case program.FromStack, program.FromStep, program.FromProduct:
		return true
	}
	return !l.IsLoaded()
}
