package binary

import "golang.org/x/arch/x86/x86asm"

// decodeInstruction decodes the instruction at the start of code; ok is false if it is
// unknown. For instructions that x86asm does not support (vector extensions, endbr64 and other
// newer ones) only the length is set. That suffices for the control flow, which none of them
// changes.
func decodeInstruction(code []byte) (inst x86asm.Inst, ok bool) {
	if n := extendedLength(code); n > 0 {
		return x86asm.Inst{Len: n}, n <= len(code)
	}
	inst, err := x86asm.Decode(code, 64)
	if err == nil && inst.Op != 0 && inst.Len > 0 {
		return inst, true
	}
	n := escapedLength(code)
	return x86asm.Inst{Len: n}, n > 0 && n <= len(code)
}

// extendedLength returns the length of an instruction with a VEX or EVEX prefix, 0 for others.
// In 64-bit code the bytes C4, C5 and 62 begin no other instruction.
func extendedLength(code []byte) int {
	at := 0
	for at < len(code) && isSegmentOrSize(code[at]) {
		at++
	}
	if at+2 >= len(code) {
		return 0
	}
	var opcodeMap byte
	start := at
	switch code[at] {
	case 0xc5:
		opcodeMap, at = 1, at+2
	case 0xc4:
		opcodeMap, at = code[at+1]&0x1f, at+3
	case 0x62:
		opcodeMap, at = code[at+1]&0x07, at+4
	default:
		return 0
	}
	if at >= len(code) {
		return 0
	}
	opcode := code[at]
	at++
	if opcodeMap == 1 && opcode == 0x77 && code[start] != 0x62 { // vzeroupper, vzeroall: no operands
		return at
	}
	n := operandLength(code[at:])
	if n == 0 {
		return 0
	}
	if at += n; opcodeMap == 3 || opcodeMap == 1 && hasImmediate(opcode) {
		at++
	}
	return at
}

// hasImmediate reports whether a vector instruction of the 0F map has an immediate byte:
// shuffles, shifts by a constant, compares, inserts and extracts.
func hasImmediate(opcode byte) bool {
	return opcode >= 0x70 && opcode <= 0x73 || opcode == 0xc2 || opcode >= 0xc4 && opcode <= 0xc6
}

// escapedLength returns the length of an instruction of the maps 0F 38 and 0F 3A, and of the
// parts of 0F that are newer than x86asm; 0 for others.
func escapedLength(code []byte) int {
	at := 0
	for at < len(code) && (isSegmentOrSize(code[at]) || code[at] == 0xf2 || code[at] == 0xf3 || code[at] == 0xf0) {
		at++
	}
	if at < len(code) && code[at]&0xf0 == 0x40 { // REX
		at++
	}
	if at+2 >= len(code) || code[at] != 0x0f {
		return 0
	}
	immediate := 0
	switch op := code[at+1]; {
	case op == 0x38:
		at += 3
	case op == 0x3a:
		at, immediate = at+3, 1
	case op == 0x01, op == 0x0d, op >= 0x18 && op <= 0x1f, op == 0xae, op == 0xb8, op == 0xbc, op == 0xbd, op == 0xc7:
		at += 2
	default:
		return 0
	}
	if at >= len(code) {
		return 0
	}
	n := operandLength(code[at:])
	if n == 0 {
		return 0
	}
	return at + n + immediate
}

// operandLength returns the length of a ModRM byte with its SIB byte and displacement.
func operandLength(code []byte) int {
	if len(code) == 0 {
		return 0
	}
	mod, rm := code[0]>>6, code[0]&7
	n := 1
	if mod == 3 {
		return n
	}
	if rm == 4 { // SIB
		if len(code) < 2 {
			return 0
		}
		n++
		if mod == 0 && code[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	return n
}

func isSegmentOrSize(b byte) bool {
	switch b {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67:
		return true
	}
	return false
}
