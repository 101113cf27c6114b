package binary

import (
	"golang.org/x/arch/x86/x86asm"
)

// stackDepths returns how much lower the stack pointer is before each instruction than at the
// function's entry. It has no value where the depth is not known, or depends on the way there.
func (g *graph) stackDepths() map[uint64]int {
	known := map[uint64]int{}
	unclear := map[int]bool{} // blocks
	begin := map[int]int{0: 0}
	for todo := []int{0}; len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		depth, ok := begin[b], !unclear[b]
		for _, inst := range g.code(b) {
			if !ok {
				delete(known, inst.addr)
				continue
			}
			known[inst.addr] = depth
			change, fixed := stackChange(inst.Inst)
			depth, ok = depth+change, fixed
		}
		for _, s := range g.Blocks[b].Succ {
			before, seen := begin[s]
			switch {
			case unclear[s]:
			case !ok || seen && before != depth:
				unclear[s] = true
				todo = append(todo, s)
			case !seen:
				begin[s] = depth
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
