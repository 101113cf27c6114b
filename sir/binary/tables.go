package binary

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// A switch jumps through a table of addresses, or of distances from the table:
//
//	cmp    $5,%edi ; ja default      a bound: the table has 6 entries
//	lea    table(%rip),%rdx          its address
//	movslq (%rdx,%rdi,4),%rax        an entry
//	add    %rdx,%rax
//	jmp    *%rax
//
// Without optimisation the index is scaled before, by a lea without a base.

// mostEntries limits a table without a bound.
const mostEntries = 1 << 12

// table returns the targets of the jump of a switch. isTable is false if the jump is not that of
// a switch, but that of a tail call through a pointer.
func (d *descent) table(jmp *instruction) (targets []uint64, isTable bool, err error) {
	t := tableSearch{d: d, before: d.before(jmp.addr)}
	base, width := t.find(whole(d.parts, jmp))
	switch {
	case width == 0:
		return nil, false, nil
	case base == 0:
		return nil, true, d.fail(jmp.addr, "a jump of a switch whose table is not found")
	}
	targets, end := d.entries(base, width, t.bound())
	if len(targets) == 0 {
		return nil, true, d.fail(jmp.addr, "a jump of a switch whose table at %#x is not understood", base)
	}
	if d.bytes(base) != nil {
		d.tables = append(d.tables, piece{base, end})
	}
	return targets, true, nil
}

// before returns the instructions before an address as they are in memory, the nearest first:
// compilers keep the code of a switch together.
func (d *descent) before(at uint64) []wholeInstruction {
	const most, farthest = 40, 400
	var list []wholeInstruction
	for a := at - 1; a > at-farthest && len(list) < most; a-- {
		if inst := d.known(a); inst != nil {
			list = append(list, d.whole(inst))
		}
	}
	return list
}

// wholeInstruction is an instruction with its operands.
type wholeInstruction struct {
	x86asm.Inst
	end uint64
}

func (d *descent) whole(i *instruction) wholeInstruction {
	return wholeInstruction{whole(d.parts, i), i.end()}
}

// tableSearch is the search for the table of one jump.
type tableSearch struct {
	d      *descent
	before []wholeInstruction
}

// find returns the table's address, 0 if it is not found, and the size of its entries, 0 if the
// jump does not use a table.
func (t *tableSearch) find(jmp x86asm.Inst) (base uint64, width int) {
	switch to := jmp.Args[0].(type) {
	case x86asm.Mem:
		return t.absolute(to)
	case x86asm.Reg:
		for k, i := range t.before {
			if !writes(i, to) {
				continue
			}
			m, isMem := i.Args[1].(x86asm.Mem)
			switch {
			case i.Op == x86asm.MOV && isMem:
				return t.absolute(m)
			case i.Op == x86asm.ADD:
				return t.relative(i, t.before[k+1:]), 4
			}
			return 0, 0
		}
	}
	return 0, 0
}

// absolute returns a table of addresses from the operand that reads it.
func (t *tableSearch) absolute(m x86asm.Mem) (base uint64, width int) {
	switch {
	case m.Index == 0 || m.Scale != 8:
		return 0, 0
	case m.Base == 0:
		return uint64(m.Disp), 8
	}
	if at := t.loaded(m.Base, 8); at != 0 {
		return at + uint64(m.Disp), 8
	}
	return 0, 8
}

// relative returns a table of distances, whose address is added to one of them.
func (t *tableSearch) relative(add wholeInstruction, before []wholeInstruction) uint64 {
	if m, ok := add.Args[1].(x86asm.Mem); ok {
		return t.loaded(m.Base, 4)
	}
	regs := []x86asm.Reg{wideOf(add.Args[0]), wideOf(add.Args[1])}
	for _, i := range before {
		m, ok := i.Args[1].(x86asm.Mem)
		if ok && i.Op == x86asm.MOVSXD && slices.Contains(regs, wideOf(i.Args[0])) && m.Scale == 4 {
			return t.loaded(m.Base, 4)
		}
	}
	for _, r := range regs { // code without optimisation
		if at := t.loaded(r, 4); r != 0 && at != 0 {
			return at
		}
	}
	return 0
}

// loaded returns the address of a table that a lea puts in a register: the nearest one before, or
// else one anywhere in the function, if it leads to a table.
func (t *tableSearch) loaded(reg x86asm.Reg, width int) uint64 {
	for _, i := range t.before {
		if writes(i, reg) {
			if at := leaAddress(i); at != 0 {
				return at
			}
		}
	}
	for n := range t.d.insts {
		if !t.d.insts[n].lea {
			continue
		}
		i := t.d.whole(&t.d.insts[n])
		if to := leaAddress(i); to != 0 && writes(i, reg) {
			if targets, _ := t.d.entries(to, width, 1); len(targets) == 1 {
				return to
			}
		}
	}
	return 0
}

// leaAddress returns the address that a lea computes, 0 if it is not known.
func leaAddress(i wholeInstruction) uint64 {
	if m, ok := i.Args[1].(x86asm.Mem); ok && i.Op == x86asm.LEA && m.Base == x86asm.RIP {
		return i.end + uint64(m.Disp)
	}
	return 0
}

// writes reports whether an instruction changes a register that is its first operand.
func writes(i wholeInstruction, reg x86asm.Reg) bool {
	switch i.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH, x86asm.CALL, x86asm.JMP, x86asm.BT:
		return false
	}
	r := wideOf(i.Args[0])
	return r != 0 && r == wide(reg)
}

func wideOf(arg x86asm.Arg) x86asm.Reg {
	if r, ok := arg.(x86asm.Reg); ok {
		return wide(r)
	}
	return 0
}

// bound returns the number of entries from the comparison of the index, 0 if there is none.
func (t *tableSearch) bound() int {
	for k, i := range t.before[min(len(t.before), 1):] {
		n, ok := i.Args[1].(x86asm.Imm)
		if !ok || i.Op != x86asm.CMP || n < 0 || n >= mostEntries {
			continue
		}
		switch t.before[k].Op { // the next instruction
		case x86asm.JA, x86asm.JBE:
			return int(n) + 1
		case x86asm.JAE, x86asm.JB:
			return int(n)
		}
	}
	return 0
}

// entries reads a table of addresses (8 bytes each) or distances (4). With a bound all entries
// must lead into the function; without, the table ends where the next one begins, or where
// an entry leads elsewhere.
func (d *descent) entries(base uint64, width, bound int) (targets []uint64, end uint64) {
	limit := bound
	if limit == 0 {
		limit = mostEntries
		for i := range d.insts {
			if !d.insts[i].lea {
				continue
			}
			if next := leaAddress(d.whole(&d.insts[i])); next > base {
				limit = min(limit, int((next-base)/uint64(width)))
			}
		}
	}
	data := d.im.data(base, limit*width)
	for n := 0; n < limit; n++ {
		to := uint64(0)
		switch {
		case len(data) < (n+1)*width:
		case width == 8:
			to = le64(data[n*8:])
		default:
			to = base + uint64(int64(int32(le32(data[n*4:]))))
		}
		if !d.reach(to) {
			if bound > 0 {
				return nil, base
			}
			break
		}
		if !slices.Contains(targets, to) {
			targets = append(targets, to)
		}
		end = base + uint64((n+1)*width)
	}
	return targets, end
}

// reach reports whether an address is in the function, or in a part of it that it then adds.
func (d *descent) reach(to uint64) bool {
	if d.bytes(to) != nil {
		return true
	}
	cold, ok := d.im.coldPart(jump{direct: true, target: to})
	return ok && d.enlarge(cold) == nil
}
