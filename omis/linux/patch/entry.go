//go:build linux && amd64

package patch

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/detour"
	"mirador/omis/node"
)

// Other tools set uprobes and breakpoints at the first instructions of functions. The kernel then
// executes the file's instruction there and continues after it, which is in the middle of our jump
// if the jump begins at the same address. So a jump for the beginning of a function begins at the
// second instruction, wherever the code gets the same result there. This file decides where that
// is.

// effects describes how an instruction changes what code at the beginning of a function uses.
type effects struct {
	pushed int32 // bytes by which it moves the stack pointer down
	flags  bool  // it may change the flags
	below  bool  // it may write below the stack pointer
}

// afterFirst returns the spot after the first instruction for code at the beginning of a function.
// reads are the arguments that the code reads. The error tells why the code must run before that
// instruction.
func (s *Surveyor) afterFirst(f *function, i int, p spot, reads node.Arguments) (spot, error) {
	if reads != 0 {
		return s.findSecond(f, i, p, reads)
	}
	found, known := s.seconds[p.addr]
	if !known {
		found.spot, found.err = s.findSecond(f, i, p, 0)
		if s.seconds == nil {
			s.seconds = make(map[uint64]second)
		}
		s.seconds[p.addr] = found
	}
	return found.spot, found.err
}

// findSecond does what afterFirst does, without its table.
func (s *Surveyor) findSecond(f *function, i int, p spot, reads node.Arguments) (spot, error) {
	first := i == 0 || i == 1 && f.insts[0].pad
	switch {
	case !first || i+1 >= len(f.insts):
		return p, errors.New("it has no second instruction")
	case s.Module.InGo(f.begin - s.Base):
		return p, errors.New("it is of a program in Go")
	case f.insts[i].leaves || f.insts[i].waits || f.insts[i+1].pad:
		return p, errors.New("execution leaves the function with its first instruction")
	}
	inst, err := detour.Decode(s.code(f.insts[i].addr, f.insts[i].end()))
	if err != nil {
		return p, err
	}
	e, err := effectsOf(inst, reads)
	if err != nil {
		return p, err
	}
	at := f.insts[i+1].addr
	if s.lands(f, at-1, at+1) || f.indirect && s.Module.TakesOwn(f.begin-s.Base, f.end-s.Base) {
		return p, errors.New("a branch may lead to its second instruction")
	}
	p.at, p.afterFirst, p.pushed, p.ends = at, true, e.pushed, false
	p.entry = p.entry && !e.below && (!e.flags || s.flagsUnused(f, i+1))
	p.Window, err = s.window(f, i+1, f.insts[i+1].end())
	return p, err
}

// effectsOf returns the effects of an instruction. The error tells why code for the beginning of a
// function cannot run after it.
func effectsOf(inst x86asm.Inst, reads node.Arguments) (e effects, err error) {
	if _, branches := inst.Args[0].(x86asm.Rel); branches {
		return e, errors.New("its first instruction is a branch")
	}
	switch inst.Op {
	case x86asm.PUSH:
		if isShort(inst) {
			return e, errors.New("its first instruction moves the stack pointer")
		}
		e.pushed = 8
	case x86asm.SUB:
		if n, ok := inst.Args[1].(x86asm.Imm); ok && inst.Args[0] == x86asm.RSP && n > 0 {
			e.pushed = int32(n)
		} else if movesStack(inst) {
			return e, errors.New("its first instruction moves the stack pointer")
		}
	default:
		if movesStack(inst) {
			return e, errors.New("its first instruction moves the stack pointer")
		}
	}
	if spoilt := written(inst) & reads; spoilt != 0 {
		return e, errors.New("its first instruction changes an argument that the probe reads")
	}
	e.flags, e.below = !keepsFlags(inst.Op), writesBelow(inst)
	return e, nil
}

// movesStack reports whether an instruction may change the stack pointer.
func movesStack(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.CMP, x86asm.TEST:
		return false
	case x86asm.POP, x86asm.POPF, x86asm.POPFD, x86asm.POPFQ, x86asm.PUSHF, x86asm.PUSHFD, x86asm.PUSHFQ,
		x86asm.ENTER, x86asm.LEAVE, x86asm.INT, x86asm.INTO, x86asm.ICEBP, x86asm.HLT, x86asm.UD1, x86asm.UD2:
		return true
	case x86asm.XCHG, x86asm.XADD, x86asm.CMPXCHG:
		return isStack(inst.Args[0]) || isStack(inst.Args[1])
	}
	return isStack(inst.Args[0])
}

// isShort reports whether an instruction pushes two bytes.
func isShort(inst x86asm.Inst) bool {
	return slices.ContainsFunc(inst.Prefix[:], func(p x86asm.Prefix) bool { return p&0xff == x86asm.PrefixDataSize })
}

func isStack(a x86asm.Arg) bool {
	return a == x86asm.RSP || a == x86asm.ESP || a == x86asm.SP || a == x86asm.SPB
}

// argumentOf maps a register to the set with the argument that it passes.
var argumentOf = map[x86asm.Reg]node.Arguments{
	x86asm.RDI: 1 << 0, x86asm.EDI: 1 << 0, x86asm.DI: 1 << 0, x86asm.DIB: 1 << 0,
	x86asm.RSI: 1 << 1, x86asm.ESI: 1 << 1, x86asm.SI: 1 << 1, x86asm.SIB: 1 << 1,
	x86asm.RDX: 1 << 2, x86asm.EDX: 1 << 2, x86asm.DX: 1 << 2, x86asm.DL: 1 << 2, x86asm.DH: 1 << 2,
	x86asm.RCX: 1 << 3, x86asm.ECX: 1 << 3, x86asm.CX: 1 << 3, x86asm.CL: 1 << 3, x86asm.CH: 1 << 3,
	x86asm.R8: 1 << 4, x86asm.R8L: 1 << 4, x86asm.R8W: 1 << 4, x86asm.R8B: 1 << 4,
	x86asm.R9: 1 << 5, x86asm.R9L: 1 << 5, x86asm.R9W: 1 << 5, x86asm.R9B: 1 << 5,
}

// written returns the arguments that an instruction may change: all of them, if the instruction may
// change registers besides its first operand.
func written(inst x86asm.Inst) node.Arguments {
	switch inst.Op {
	case x86asm.PUSH, x86asm.CMP, x86asm.TEST, x86asm.NOP:
		return 0
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.ADD, x86asm.SUB,
		x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.NOT, x86asm.NEG, x86asm.INC, x86asm.DEC, x86asm.SHL, x86asm.SHR, x86asm.SAR,
		x86asm.MOVAPS, x86asm.MOVUPS, x86asm.MOVAPD, x86asm.MOVUPD, x86asm.MOVDQA, x86asm.MOVDQU,
		x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVD, x86asm.MOVQ, x86asm.PXOR, x86asm.XORPS, x86asm.XORPD:
		if r, ok := inst.Args[0].(x86asm.Reg); ok {
			return argumentOf[r]
		}
		return 0
	}
	return ^node.Arguments(0)
}

// keepsFlags reports whether an operation does not change the flags.
func keepsFlags(op x86asm.Op) bool {
	switch op {
	case x86asm.PUSH, x86asm.POP, x86asm.NOP, x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.LEA, x86asm.NOT,
		x86asm.MOVAPS, x86asm.MOVUPS, x86asm.MOVAPD, x86asm.MOVUPD, x86asm.MOVDQA, x86asm.MOVDQU,
		x86asm.MOVSS, x86asm.MOVSD_XMM, x86asm.MOVD, x86asm.MOVQ, x86asm.PXOR, x86asm.XORPS, x86asm.XORPD,
		x86asm.CDQ, x86asm.CDQE, x86asm.CQO, x86asm.CWDE:
		return true
	}
	return false
}

// setsFlags reports whether an operation writes all arithmetic flags and reads none.
func setsFlags(op x86asm.Op) bool {
	switch op {
	case x86asm.ADD, x86asm.SUB, x86asm.CMP, x86asm.TEST, x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.NEG:
		return true
	}
	return false
}

// flagsUnused reports whether the flags are unused before the i-th instruction, because all of them
// are written before they are read.
func (s *Surveyor) flagsUnused(f *function, i int) bool {
	const farthest = 8
	for end := min(i+farthest, len(f.insts)); i < end; i++ {
		if f.insts[i].pad {
			return false
		}
		inst, err := detour.Decode(s.code(f.insts[i].addr, f.insts[i].end()))
		switch {
		case err != nil:
			return false
		case setsFlags(inst.Op), inst.Op == x86asm.CALL, inst.Op == x86asm.RET:
			return true
		case !keepsFlags(inst.Op):
			return false
		}
	}
	return false
}

// writesBelow reports whether an instruction may write below the stack pointer, where its function
// may keep data. The decoder gives no operands for some vector instructions.
func writesBelow(inst x86asm.Inst) bool {
	if inst.Op == x86asm.VMOVDQU {
		return true
	}
	for _, a := range inst.Args {
		if m, ok := a.(x86asm.Mem); ok && inst.Op != x86asm.LEA && m.Base == x86asm.RSP && (m.Disp < 0 || m.Index != 0) {
			return true
		}
	}
	return false
}

// exclusive returns the reason why no other tool may set a uprobe at the beginning of the function
// while there is a jump at the window, or "" if other tools may.
func (s *Surveyor) exclusive(w *detour.Window, why error) string {
	begin, end := s.bounds(w.Addr)
	if begin == end || w.Addr != begin {
		return ""
	}
	if why == nil {
		why = errors.New("there is no room for a jump elsewhere")
	}
	return exclusiveBecause(why)
}

func exclusiveBecause(why error) string {
	return fmt.Sprintf("the jump is at the first instruction of the function (%v), and another tool's uprobe there would end the process", why)
}
