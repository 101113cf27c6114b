//go:build linux && amd64

package patch

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
)

// checkGo tells why a window cannot be in a Go program. Go's scheduler keeps on the stacks the
// addresses at which it interrupted goroutines; Go turns faults at known addresses into panics; and
// some functions have little room on their stacks.
func (s *Surveyor) checkGo(f *function, w *detour.Window) error {
	if isStackCheck(w) {
		return nil
	}
	if !w.Whole() && s.Module.Goroutines == nil {
		return errors.New("a goroutine may have been interrupted in its middle, and no symbol locates the program's list of goroutines")
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
			return errors.New("an instruction there may fault, and Go makes a panic of a fault only at an address that it knows")
		case !w.Whole() && inst.Op == x86asm.CALL:
			return errors.New("a goroutine may return from a call there")
		}
		begin = end
	}
	return nil
}

// sleepers locates the goroutines that may have been interrupted within a window. It returns nil if
// that is impossible.
func (s *Surveyor) sleepers(w *detour.Window) *landing.Goroutines {
	if !s.Module.InGo(w.Addr-s.Base) || s.Module.Goroutines == nil || w.Whole() || isStackCheck(w) {
		return nil
	}
	return s.listed()
}

// listed locates the program's list of goroutines.
func (s *Surveyor) listed() *landing.Goroutines {
	g := s.Module.Goroutines
	return &landing.Goroutines{List: s.Base + g.List, Count: s.Base + g.Count}
}

// isStackCheck reports whether a window contains only the instructions with which a Go function
// begins and where a goroutine is never interrupted: the comparison of the stack pointer with a
// limit, and a conditional jump.
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
// stackguard0 or stackguard1, by their offsets in the descriptor of a goroutine.
func comparesLimit(inst x86asm.Inst) bool {
	if inst.Op != x86asm.CMP {
		return false
	}
	m, ok := inst.Args[1].(x86asm.Mem)
	_, register := inst.Args[0].(x86asm.Reg)
	return ok && register && m.Index == 0 && m.Base != x86asm.RSP && (m.Disp == 0x10 || m.Disp == 0x18)
}

// mayFault reports whether an instruction divides, or accesses memory outside the stack, the
// module's data and the goroutine's descriptor.
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
	return inst.Op == x86asm.VMOVDQU // the decoder gives no operands for it
}
