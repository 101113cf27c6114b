package binary

import (
	"golang.org/x/arch/x86/x86asm"
)

// stackAt is a value of the stack pointer: so much lower than what an instruction set it to, or than
// at the function's entry if there is no such instruction.
type stackAt struct {
	known bool
	set   uint64
	depth int
}

// stackDepths returns the value of the stack pointer before each instruction. An instruction before
// which it differs between the ways to the instruction has no value.
func (g *graph) stackDepths() []stackAt {
	known := kept[stackAt](&keptDepths, len(g.insts))
	unclear := make([]bool, len(g.Blocks))
	begin := make([]stackAt, len(g.Blocks))
	begin[0].known = true
	for todo := []int{0}; len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at := begin[b]
		at.known = at.known && !unclear[b]
		for i := g.pieces[b].from; i < g.pieces[b].to; i++ {
			if known[i] = at; !g.insts[i].stack {
				continue
			}
			change, fixed := stackChange(g.whole(&g.insts[i]))
			if at.depth += change; !fixed {
				at = stackAt{known: true, set: g.insts[i].addr}
			}
		}
		for _, s := range g.Blocks[b].Succ {
			before := begin[s]
			switch {
			case unclear[s]:
			case !at.known || before.known && before != at:
				unclear[s] = true
				todo = append(todo, s)
			case !before.known:
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
