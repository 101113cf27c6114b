//go:build linux && amd64

package patch

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/linux/detour"
)

// checkGo tells why a window cannot be in a program in Go. Its scheduler keeps the
// addresses at which it interrupts goroutines, on their own stacks, where nobody
// finds them; and it makes panics of faults at addresses that it knows.
func checkGo(w *detour.Window) error {
	if isStackCheck(w) {
		return nil
	}
	if !w.Whole() {
		return errors.New("a goroutine may have been interrupted in its middle")
	}
	inst, err := detour.Decode(w.Code)
	if err == nil && mayFault(inst) {
		err = errors.New("the instruction there may fault, of which Go makes a panic where it knows the address")
	}
	return err
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
		case inst.Op == x86asm.LEA && i == 0 && !last, inst.Op == x86asm.CMP && !last, inst.Op == x86asm.JBE && last:
		default:
			return false
		}
		begin = end
	}
	return true
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
