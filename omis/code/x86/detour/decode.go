package detour

import (
	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/relocate"
)

// LandingPad is the length of endbr64, the only instruction that an indirect branch may
// lead to if the processor enforces that (IBT). Linux enforces it in the kernel only.
const LandingPad = 4

// IsLandingPad reports whether code begins with endbr64.
func IsLandingPad(code []byte) bool {
	return len(code) >= LandingPad && [LandingPad]byte(code) == [LandingPad]byte{0xf3, 0x0f, 0x1e, 0xfa}
}

// Decode decodes the first instruction of code.
func Decode(code []byte) (x86asm.Inst, error) { return relocate.Decode(code) }

// Leaves reports whether execution does not continue directly after inst.
func Leaves(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.CALL, x86asm.JMP, x86asm.RET, x86asm.LCALL, x86asm.LJMP, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		return true
	}
	return false
}

// Calls reports whether inst is a system call, in which a thread may be waiting.
func Calls(inst x86asm.Inst) bool { return inst.Op == x86asm.SYSCALL || inst.Op == x86asm.SYSENTER }
