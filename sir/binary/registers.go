package binary

import "golang.org/x/arch/x86/x86asm"

// registers tracks how registers got their values, in order to distinguish the jump of a
// switch from a tail call through a pointer:
//
//	lea    table(%rip),%rdx          table = what a switch loads its entries from
//	movslq (%rdx,%rax,4),%rax        an entry, relative to the table
//	add    %rdx,%rax                 computed, as in a switch
//	jmp    *%rax
//
// A jump to a pointer that was loaded from memory is a tail call, unless it was loaded with an
// index, as for a switch without relative tables.
type registers struct {
	values  map[x86asm.Reg]origin
	tableAt uint64 // address of a table inside the function: its code ends there
}

type origin struct {
	computed bool
	address  uint64 // the operand of a lea
}

// computed reports whether the register's value comes from a table.
func (r *registers) computed(reg x86asm.Reg) bool { return r.values[wide(reg)].computed }

// update applies the effect of an instruction of the body.
func (r *registers) update(inst x86asm.Inst, addr uint64, b *body) {
	if r.values == nil {
		r.values = map[x86asm.Reg]origin{}
	}
	dst, ok := inst.Args[0].(x86asm.Reg)
	if !ok || inst.Op == x86asm.CMP || inst.Op == x86asm.TEST || inst.Op == x86asm.PUSH || isJump(inst.Op) {
		return
	}
	dst = wide(dst)
	switch src := inst.Args[1].(type) {
	case x86asm.Mem:
		r.updateLoad(inst, addr, b, dst, src)
	case x86asm.Reg:
		switch inst.Op {
		case x86asm.ADD, x86asm.SUB:
			r.values[dst] = origin{computed: true}
		case x86asm.MOV:
			r.values[dst] = r.values[wide(src)]
		default:
			delete(r.values, dst)
		}
	default:
		delete(r.values, dst)
	}
}

func (r *registers) updateLoad(inst x86asm.Inst, addr uint64, b *body, dst x86asm.Reg, src x86asm.Mem) {
	switch {
	case inst.Op == x86asm.LEA && src.Base == x86asm.RIP:
		r.values[dst] = origin{address: addr + uint64(inst.Len) + uint64(src.Disp)}
	case inst.Op == x86asm.ADD || inst.Op == x86asm.MOVSXD || inst.Op == x86asm.MOV && src.Index != 0:
		if table := r.values[wide(src.Base)].address; table > addr && b.holds(table) && src.Index != 0 {
			r.tableAt = table
		}
		r.values[dst] = origin{computed: true}
	default:
		delete(r.values, dst)
	}
}

// wide returns the 64-bit register that contains r.
func wide(r x86asm.Reg) x86asm.Reg {
	if r >= x86asm.EAX && r <= x86asm.R15L {
		return x86asm.RAX + (r - x86asm.EAX)
	}
	return r
}
