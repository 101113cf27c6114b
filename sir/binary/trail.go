package binary

import "golang.org/x/arch/x86/x86asm"

// trail remembers how registers got their values, as far as it tells the jump of
// a switch from a tail call through a pointer:
//
//	lea    table(%rip),%rdx          table = what a switch loads its entries from
//	movslq (%rdx,%rax,4),%rax        an entry, relative to the table
//	add    %rdx,%rax                 computed: the jump is that of a switch
//	jmp    *%rax
//
// A pointer that is loaded and jumped to as it is belongs to a tail call, unless
// it was loaded with an index, as a switch without relative tables does.
type trail struct {
	made    map[x86asm.Reg]origin
	tableAt uint64 // a table inside the function: code ends there
}

type origin struct {
	computed bool
	address  uint64 // of a lea
}

// computed tells whether the register's value was put together from a table.
func (t *trail) computed(r x86asm.Reg) bool { return t.made[wide(r)].computed }

// note takes in the effect of an instruction of the body.
func (t *trail) note(inst x86asm.Inst, addr uint64, b *body) {
	if t.made == nil {
		t.made = map[x86asm.Reg]origin{}
	}
	dst, ok := inst.Args[0].(x86asm.Reg)
	if !ok || inst.Op == x86asm.CMP || inst.Op == x86asm.TEST || inst.Op == x86asm.PUSH || isJump(inst.Op) {
		return
	}
	dst = wide(dst)
	switch src := inst.Args[1].(type) {
	case x86asm.Mem:
		t.noteLoad(inst, addr, b, dst, src)
	case x86asm.Reg:
		switch inst.Op {
		case x86asm.ADD, x86asm.SUB:
			t.made[dst] = origin{computed: true}
		case x86asm.MOV:
			t.made[dst] = t.made[wide(src)]
		default:
			delete(t.made, dst)
		}
	default:
		delete(t.made, dst)
	}
}

func (t *trail) noteLoad(inst x86asm.Inst, addr uint64, b *body, dst x86asm.Reg, src x86asm.Mem) {
	switch {
	case inst.Op == x86asm.LEA && src.Base == x86asm.RIP:
		t.made[dst] = origin{address: addr + uint64(inst.Len) + uint64(src.Disp)}
	case inst.Op == x86asm.ADD || inst.Op == x86asm.MOVSXD || inst.Op == x86asm.MOV && src.Index != 0:
		if table := t.made[wide(src.Base)].address; table > addr && b.holds(table) && src.Index != 0 {
			t.tableAt = table
		}
		t.made[dst] = origin{computed: true}
	default:
		delete(t.made, dst)
	}
}

// wide is the 64-bit register that r is a part of.
func wide(r x86asm.Reg) x86asm.Reg {
	if r >= x86asm.EAX && r <= x86asm.R15L {
		return x86asm.RAX + (r - x86asm.EAX)
	}
	return r
}
