package binary

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
)

// Exits returns the addresses of the instructions by which the function is left: returns and
// tail jumps, in ascending order, including those of its cold parts. A function that never
// returns has none. The error is a *CodeError if the code cannot be followed: a breakpoint at
// a guessed address could overwrite data.
//
// Exits disassembles the function from its start to its end. A jump leaves the function if its
// target is outside. A jump through a register or memory leaves it unless it belongs to a
// switch.
//
// For a region inside a function, Exits returns the addresses that Inside found.
func (im *Image) Exits(unit *sir.Region) ([]uint64, error) {
	if c := unit.Code; c != nil {
		if c.Untimed == "" && unit.Form == sir.Woven {
			if err := im.level(unit); err != nil {
				return nil, err
			}
		}
		return c.Exits, refusal(unit, c.Untimed)
	}
	f, ok := im.find(unit.Entry)
	if !ok || f.addr != unit.Entry {
		return nil, &CodeError{unit.Name, unit.Entry, "no function of " + im.name + " begins"}
	}
	parts, err := im.parts(f)
	if err != nil {
		return nil, err
	}
	var exits []uint64
	for _, b := range parts {
		found, err := b.exits(parts, im.ibt)
		if err != nil {
			return nil, err
		}
		exits = append(exits, found...)
	}
	slices.Sort(exits)
	return exits, nil
}

// parts disassembles a function and the cold parts that it jumps to.
func (im *Image) parts(f symbol) ([]*body, error) {
	const most = 64
	var parts []*body
	for todo := []symbol{f}; len(todo) > 0 && len(parts) < most; todo = todo[1:] {
		b, err := im.disassemble(todo[0])
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
		for _, j := range b.jumps {
			known := func(low, end uint64) bool { return low <= j.target && j.target < end }
			if slices.ContainsFunc(parts, func(p *body) bool { return known(p.low, p.end) }) ||
				slices.ContainsFunc(todo, func(s symbol) bool { return known(s.addr, s.addr+s.size) }) {
				continue
			}
			if cold, ok := im.coldPart(j); ok {
				cold.name = f.name
				todo = append(todo, cold)
			}
		}
	}
	return parts, nil
}

// coldPart returns the target of a jump if it is a part of the same function that the compiler
// moved elsewhere. Its symbol is NAME.cold, where NAME is any alias. In a stripped file the
// frame table still has its extent. Then only a conditional jump is proof: any other jump may
// be a tail call of a function without a symbol.
func (im *Image) coldPart(j jump) (symbol, bool) {
	if !j.direct {
		return symbol{}, false
	}
	s, ok := im.find(j.target)
	if ok && !s.unnamed {
		return s, isCold(s.name)
	}
	if !j.conditional {
		return symbol{}, false
	}
	if ok {
		return s, true
	}
	return im.frames().find(j.target)
}

// body describes how the code of a function, or of a part of it, is left.
type body struct {
	name     string
	low, end uint64
	returns  []uint64
	jumps    []jump
	last     x86asm.Op // of the last instruction that is not padding
}

// ends reports whether control cannot continue to the code behind the body, unless its last call returns.
func (b *body) ends() bool {
	switch b.last {
	case x86asm.CALL, x86asm.JMP, x86asm.HLT:
		return true
	}
	return false
}

// jump is a jump of any kind.
type jump struct {
	addr        uint64
	direct      bool
	target      uint64 // of a direct jump
	conditional bool
	byTable     bool // indirect, and the target comes from a table, as for a switch
	notrack     bool // indirect, with the notrack prefix that compilers use for a switch
}

func (b *body) holds(addr uint64) bool { return b.low <= addr && addr < b.end }

// exits returns the instructions of the body that leave its function.
func (b *body) exits(parts []*body, ibt bool) ([]uint64, error) {
	found := slices.Clone(b.returns)
	for _, j := range b.jumps {
		inside := slices.ContainsFunc(parts, func(p *body) bool { return p.holds(j.target) })
		switch {
		case j.direct && inside:
		case j.direct && j.conditional:
			// A breakpoint here would be hit whether the function is left or not.
			return nil, &CodeError{b.name, j.addr, "a conditional jump to another function"}
		case j.direct:
			found = append(found, j.addr)
		case j.notrack, j.byTable && !ibt:
		default:
			found = append(found, j.addr)
		}
	}
	return found, nil
}

// disassemble decodes a function instruction by instruction.
func (im *Image) disassemble(f symbol) (*body, error) {
	code, err := im.code(f.addr, f.size)
	if err != nil {
		return nil, err
	}
	b := &body{name: f.name, low: f.addr, end: f.addr + uint64(len(code))}
	var regs registers
	for at := 0; at < len(code); {
		addr := f.addr + uint64(at)
		if regs.tableAt == addr {
			break // the table of a switch follows the code
		}
		inst, ok := decodeInstruction(code[at:])
		if !ok {
			return nil, &CodeError{f.name, addr, "an unknown instruction"}
		}
		switch inst.Op {
		case x86asm.RET, x86asm.LRET:
			b.returns = append(b.returns, addr)
		default:
			if j, ok := asJump(inst, addr, &regs); ok {
				j.notrack = slices.Contains(code[at:at+inst.Len-1], 0x3e) && !j.direct
				b.jumps = append(b.jumps, j)
			}
		}
		regs.update(inst, addr, b)
		if !isPadding(inst) {
			b.last = inst.Op
		}
		at += inst.Len
	}
	return b, nil
}

func asJump(inst x86asm.Inst, addr uint64, regs *registers) (jump, bool) {
	if !isJump(inst.Op) {
		return jump{}, false
	}
	j := jump{addr: addr, conditional: inst.Op != x86asm.JMP}
	switch target := inst.Args[0].(type) {
	case x86asm.Rel:
		j.direct, j.target = true, addr+uint64(inst.Len)+uint64(int64(target))
	case x86asm.Mem:
		j.byTable = target.Index != 0
	case x86asm.Reg:
		j.byTable = regs.computed(target)
	}
	return j, true
}

func isJump(op x86asm.Op) bool {
	switch op {
	case x86asm.JMP, x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ, x86asm.JE, x86asm.JECXZ, x86asm.JG,
		x86asm.JGE, x86asm.JL, x86asm.JLE, x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP,
		x86asm.JRCXZ, x86asm.JS, x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		return true
	}
	return false
}
