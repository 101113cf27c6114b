//go:build linux && amd64

package patch

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
)

// checkGo tells why a window cannot be in a program in Go. Its scheduler keeps the
// addresses at which it interrupts goroutines, on their stacks; it makes panics of faults
// at addresses that it knows; and some of its functions have hardly any room on a stack.
func (s *Surveyor) checkGo(f *function, w *detour.Window) error {
	if isStackCheck(w) {
		return nil
	}
	if !w.Whole() && s.Module.Goroutines == nil {
		return errors.New("a goroutine may have been interrupted in its middle, and no symbol tells where the program lists them")
	}
	if err := s.hasRoom(f); err != nil {
		return err
	}
	begin := 0
	for _, end := range w.Ends {
		inst, err := detour.Decode(w.Code[begin:end])
		switch {
		case err != nil:
			return err
		case mayFault(inst):
			return errors.New("an instruction there may fault, of which Go makes a panic where it knows the address")
		case !w.Whole() && inst.Op == x86asm.CALL:
			return errors.New("there is a call, to whose end a goroutine may return")
		}
		begin = end
	}
	return nil
}

// sleepers is where to find the goroutines that may have been interrupted within a
// window; nil: nobody may have.
func (s *Surveyor) sleepers(w *detour.Window) *landing.Goroutines {
	if !s.Module.InGo(w.Addr-s.Base) || s.Module.Goroutines == nil || w.Whole() || isStackCheck(w) {
		return nil
	}
	return s.listed()
}

// listed is where the program lists its goroutines.
func (s *Surveyor) listed() *landing.Goroutines {
	g := s.Module.Goroutines
	return &landing.Goroutines{List: s.Base + g.List, Count: s.Base + g.Count}
}

// isStackCheck tells that a window has nothing but what a function in Go begins
// with, where its goroutine is never interrupted: the comparison of the stack
// pointer with a limit, and a conditional jump.
func isStackCheck(w *detour.Window) bool {
	begin := 0
	for i, end := range w.Ends {
		inst, err := detour.Decode(w.Code[begin:end])
		if err != nil {
			return false
		}
		switch last := i == len(w.Ends)-1; {
		case inst.Op == x86asm.LEA && i == 0 && !last, comparesLimit(inst) && !last, inst.Op == x86asm.JBE && last && i > 0:
		default:
			return false
		}
		begin = end
	}
	return true
}

// comparesLimit reports whether an instruction compares a register with a limit of the stack,
// which the descriptor of a goroutine has at these distances: stackguard0 and stackguard1.
func comparesLimit(inst x86asm.Inst) bool {
	if inst.Op != x86asm.CMP {
		return false
	}
	m, ok := inst.Args[1].(x86asm.Mem)
	_, register := inst.Args[0].(x86asm.Reg)
	return ok && register && m.Index == 0 && m.Base != x86asm.RSP && (m.Disp == 0x10 || m.Disp == 0x18)
}

// mayFault tells whether an instruction uses memory but that of the stack, of the
// module's data and of the goroutine, or divides.
func mayFault(inst x86asm.Inst) bool {
	const goroutine = x86asm.R14
	switch inst.Op {
	case x86asm.LEA, x86asm.NOP:
		return false
	case x86asm.DIV, x86asm.IDIV:
		return true
	}
	for _, arg := range inst.Args {
		if m, ok := arg.(x86asm.Mem); ok {
			switch m.Base {
			case x86asm.RSP, x86asm.RBP, x86asm.RIP, goroutine:
			default:
				return true
			}
		}
	}
	return inst.Op == x86asm.VMOVDQU // of which the decoder tells no operands
}
