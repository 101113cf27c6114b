package relocate

import "golang.org/x/arch/x86/x86asm"

// Decode decodes the first instruction of code. x86asm does not know vector instructions
// with a VEX or EVEX prefix; of these, Decode determines the length and the offset of a
// relative address. Their Op is always VMOVDQU and only means that execution continues
// after the instruction.
func Decode(code []byte) (x86asm.Inst, error) {
	if inst, ok, is := vector(code); is {
		switch {
		case !ok:
			return inst, x86asm.ErrUnrecognized
		case inst.Len > len(code):
			return inst, x86asm.ErrTruncated
		}
		return inst, nil
	}
	inst, err := x86asm.Decode(code, 64)
	// x86asm returns Op(0) without an error for instructions that its tables lack.
	if err == nil && inst.Op == 0 {
		err = x86asm.ErrUnrecognized
	}
	return inst, err
}

// First bytes of the prefixes of vector instructions, and the lengths of the prefixes.
const (
	vex2, vex2Length = 0xc5, 2
	vex3, vex3Length = 0xc4, 3
	evex, evexLength = 0x62, 4
	xop              = 0x8f
)

// vector decodes an instruction with such a prefix; is reports whether code begins with
// one, ok whether the instruction is known.
func vector(code []byte) (inst x86asm.Inst, ok, is bool) {
	n := 0
	for n < len(code) && isAddressPrefix(code[n]) {
		n++
	}
	if n+evexLength+1 > len(code) {
		// Too short for most instructions; the shortest, vzeroupper, has three bytes.
		code = append(append([]byte(nil), code...), make([]byte, evexLength+1)...)
	}
	var opcodes byte
	switch code[n] {
	case vex2:
		opcodes, n = 1, n+vex2Length
	case vex3:
		opcodes, n = code[n+1]&0x1f, n+vex3Length
	case evex:
		opcodes, n = code[n+1]&7, n+evexLength
	case xop:
		// If these bits are less than 8, it is a pop and not a prefix.
		return inst, false, code[n+1]&0x1f >= 8
	default:
		return inst, false, false
	}
	if opcodes == 0 || opcodes == 4 || opcodes > 6 {
		return inst, false, true
	}
	return operands(code, n, opcodes)
}

// operands decodes what follows the prefix.
func operands(code []byte, n int, opcodes byte) (inst x86asm.Inst, ok, is bool) {
	const zero = 0x77 // vzeroupper and vzeroall have no operands
	inst.Op = x86asm.VMOVDQU
	opcode := code[n]
	n++
	if opcodes == 1 && opcode == zero {
		inst.Len = n
		return inst, true, true
	}
	n, inst.PCRelOff = memoryOperand(code, n)
	if inst.PCRelOff > 0 {
		inst.PCRel = 4
	}
	if hasImmediate(opcodes, opcode) {
		n++
	}
	inst.Len = n
	return inst, n <= len(code), true
}

// memoryOperand skips the bytes of a memory operand; relative is the offset of the
// distance if the operand is relative to the instruction, else 0.
func memoryOperand(code []byte, n int) (end, relative int) {
	const direct, indexed, absolute = 3, 4, 5
	if n >= len(code) {
		return n + 1, 0
	}
	mod, rm := code[n]>>6, code[n]&7
	n++
	if mod == direct {
		return n, 0
	}
	base := rm
	if rm == indexed {
		if n < len(code) {
			base = code[n] & 7
		}
		n++
	}
	switch {
	case mod == 1:
		return n + 1, 0
	case mod == 2:
		return n + 4, 0
	case base == absolute && rm == absolute:
		return n + 4, n
	case base == absolute:
		return n + 4, 0
	}
	return n, 0
}

// hasImmediate reports whether a byte follows the operands.
func hasImmediate(opcodes, opcode byte) bool {
	switch opcodes {
	case 3:
		return true
	case 1:
		return opcode >= 0x70 && opcode <= 0x73 || opcode == 0xc2 || opcode >= 0xc4 && opcode <= 0xc6
	}
	return false
}

// isAddressPrefix reports whether a byte is a prefix that may precede such an
// instruction.
func isAddressPrefix(b byte) bool {
	switch b {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67:
		return true
	}
	return false
}
