package binary

import (
	"golang.org/x/arch/x86/x86asm"
)

// stackAt is a value of the stack pointer: so much lower than what an instruction set it to, or than
// at the function's entry if there is no such instruction.
type stackAt struct {
	set   uint64
	depth int
}

// stackDepths returns the value of the stack pointer before each instruction. An instruction before
// which it differs between the ways to the instruction has no value.
func (g *graph) stackDepths() map[uint64]stackAt {
	known := map[uint64]stackAt{}
	unclear := map[int]bool{} // blocks
	begin := map[int]stackAt{0: {}}
	for todo := []int{0}; len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at, ok := begin[b], !unclear[b]
		for _, inst := range g.code(b) {
			if delete(known, inst.addr); ok {
				known[inst.addr] = at
			}
			change, fixed := 0, true
			if inst.stack {
				change, fixed = stackChange(g.whole(&inst))
			}
			if at.depth += change; !fixed {
				at, ok = stackAt{set: inst.addr}, true
			}
		}
		for _, s := range g.Blocks[b].Succ {
			before, seen := begin[s]
			switch {
			case unclear[s]:
			case !ok || seen && before != at:
				unclear[s] = true
				todo = append(todo, s)
			case !seen:
				begin[s] = at
				todo = append(todo, s)
			}
		}
	}
	return known
}

// stackChange returns by how much an instruction lowers the stack pointer; fixed is false if that
// is not known.
func stackChange(inst x86asm.Inst) (change int, fixed bool) {
	const word = 8
	switch inst.Op {
	case x86asm.PUSH, x86asm.PUSHF, x86asm.PUSHFQ:
		if inst.DataSize == 16 {
			return 0, false
		}
		return word, true
	case x86asm.POP, x86asm.POPF, x86asm.POPFQ:
		return -word, inst.DataSize != 16 && inst.Args[0] != x86asm.RSP
	case x86asm.LEAVE, x86asm.ENTER:
		return 0, false
	case x86asm.CMP, x86asm.TEST:
		return 0, true
	}
	to, ok := inst.Args[0].(x86asm.Reg)
	if !ok || wide(to) != x86asm.RSP {
		return 0, true
	}
	n, isImm := inst.Args[1].(x86asm.Imm)
	m, isMem := inst.Args[1].(x86asm.Mem)
	switch {
	case inst.Op == x86asm.SUB && isImm:
		return int(n), true
	case inst.Op == x86asm.ADD && isImm:
		return -int(n), true
	case inst.Op == x86asm.LEA && isMem && m.Base == x86asm.RSP && m.Index == 0:
		return -int(m.Disp), true
	}
	return 0, false
}
