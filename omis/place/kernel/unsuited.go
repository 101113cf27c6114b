//go:build linux && amd64

package kernel

import "slices"

// Unsuited returns why no uprobe may be on the first instruction of code, "" if one may be there. More depends on the
// kernel and on the process.
func Unsuited(code []byte) string {
	if why := spoilt(code); why != "" {
		return "it could change what the program does: " + why
	}
	if length, _ := measure(code); length == 0 {
		return "the instruction is not known"
	}
	if rejected(code) {
		return "the kernel sets no uprobe on such an instruction"
	}
	return ""
}

// rejected reports whether the kernel rejects an instruction (arch/x86/kernel/uprobes.c): with a lock or segment
// prefix, a branch with an operand size, or one that traps, uses ports or masks exceptions.
func rejected(code []byte) bool {
	for i, b := range code {
		switch b {
		case 0x26, 0x2e, 0x36, 0x3e, 0xf0:
			return true
		case 0x64, 0x65, operandSize, 0x67, 0xf2, 0xf3:
			continue
		}
		for i < len(code) && code[i]&0xf0 == 0x40 { // REX
			i++
		}
		return rejectedOpcode(code[i:], slices.Contains(code[:i], operandSize))
	}
	return false
}

// operandSize is the prefix for 16-bit operands.
const operandSize = 0x66

// rejectedOpcode reports whether the kernel rejects an instruction without its prefixes.
func rejectedOpcode(code []byte, short bool) bool {
	if len(code) == 0 {
		return false
	}
	switch op := code[0]; {
	case op >= 0x6c && op <= 0x6f, op >= 0xe4 && op <= 0xe7, op >= 0xec && op <= 0xef, // ports
		op == 0xcc, op == 0xcd, op == 0xcf, op == 0xf1, op == 0xf4, op == 0xfa, op == 0xfb:
		return true
	case op == 0x8e: // mov to the stack segment
		return len(code) > 1 && code[1]>>3&7 == 2
	case op >= 0x70 && op <= 0x7f, op == 0xe8, op == 0xe9, op == 0xeb:
		return short
	case op == 0x0f:
		return short && len(code) > 1 && code[1]&0xf0 == 0x80
	}
	return false
}
