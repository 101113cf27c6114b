package relocate

import "golang.org/x/arch/x86/x86asm"

// Decode reads the instruction that code begins with. Of vector instructions with a
// prefix of their own (VEX, EVEX), which the decoder takes for something else, it
// tells the length and where an address relative to the instruction is; Op, then
// VMOVDQU, says no more than that control goes on behind it.
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
	// Op(0) without an error is what the decoder answers on instructions its tables lack.
	if err == nil && inst.Op == 0 {
		err = x86asm.ErrUnrecognized
	}
	return inst, err
}

// First bytes of prefixes that say how to read a vector instruction, and the lengths
// of the prefixes.
const (
	vex2, vex2Length = 0xc5, 2
	vex3, vex3Length = 0xc4, 3
	evex, evexLength = 0x62, 4
	xop              = 0x8f
)

// vector decodes an instruction with such a prefix; is tells that code begins with
// one, ok that it is known.
func vector(code []byte) (inst x86asm.Inst, ok, is bool) {
	n := 0
	for n < len(code) && isAddressPrefix(code[n]) {
		n++
	}
	if n+evexLength+1 > len(code) {
		// Too short for most; the shortest, vzeroupper, has three bytes.
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
		// With a zero in the middle it is a pop, which has no other prefix's meaning.
		return inst, false, code[n+1]&0x1f >= 8
	default:
		return inst, false, false
	}
	if opcodes == 0 || opcodes == 4 || opcodes > 6 {
		return inst, false, true
	}
	return operands(code, n, opcodes)
}

// operands goes on behind the prefix.
func operands(code []byte, n int, opcodes byte) (inst x86asm.Inst, ok, is bool) {
	const zero = 0x77 // vzeroupper, vzeroall: nothing follows
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

// memoryOperand goes over the bytes that say where an operand is; relative is where
// the distance of one that is relative to the instruction stands, 0 without one.
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

// hasImmediate tells whether a byte follows the operands.
func hasImmediate(opcodes, opcode byte) bool {
	switch opcodes {
	case 3:
		return true
	case 1:
		return opcode >= 0x70 && opcode <= 0x73 || opcode == 0xc2 || opcode >= 0xc4 && opcode <= 0xc6
	}
	return false
}

// isAddressPrefix tells a prefix that may stand before one of these.
func isAddressPrefix(b byte) bool {
	switch b {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67:
		return true
	}
	return false
}
