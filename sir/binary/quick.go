package binary

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// machineCode is what the control flow needs to know of an instruction. x86asm takes about a microsecond to decode all
// operands, and few of them are ever needed.
type machineCode struct {
	Len      int
	distance int32     // 0 if the target of a branch is in a register or in memory
	Op       x86asm.Op // of branches, calls, and others that end a block, and of nops; of other instructions it may be 0
	direct   bool      // of a branch or call: it leads to the end of the instruction and distance
	stack    bool      // it may change the stack pointer
	lea      bool
}

// What follows an opcode, for each opcode of the first two maps:
//
//	m  operands (ModRM)               1  nothing
//	i  an immediate byte              z  an immediate word
//	b  operands, an immediate byte    w  operands, an immediate word
//	v  an immediate word of the size of a register
//	s  nothing, and the stack pointer changes; S, Z: the same with a byte, a word
//	j  a short distance of a branch, q: a long one; k, J, c: of a jump, of a jump, of a call
//	r  nothing, and the function returns; t: nothing, a trap; n: nothing, without an effect; N: operands, without an effect
//	p  an opcode, because it is a prefix; x: an opcode of the second map
//	g, G, e, f, y, Y, h, l: operands with a part of the opcode
//	.  decoded by x86asm
const (
	firstMap = "" +
		"mmmmiz..mmmmiz.x" + "mmmmiz..mmmmiz.." + "mmmmizp.mmmmizp." + "mmmmizp.mmmmizp." +
		"................" + "ssssssssssssssss" + "...mppppZwSb...." + "jjjjjjjjjjjjjjjj" +
		"bw.bmmmmmmmm.l.." + "n.......11......" + "....1111iz111111" + "iiiiiiiivvvvvvvv" +
		"bb.r..yY.s..t..." + "mmmm............" + "........cJ.k...." + "..pp..gG......ef"
	secondMap = "" +
		".....1.........." + "mmmmmmmm.......N" + "........mmmmmmmm" + "................" +
		"mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "b...mmm.....mmmm" +
		"qqqqqqqqqqqqqqqq" + "mmmmmmmmmmmmmmmm" + "..1mbm.....mbm.m" + "mm.m..mm..hmmmmm" +
		"mmbmbbb.1111.111" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmm."
)

// layout describes what follows the opcodes of a class.
type layout struct {
	known     bool
	operands  bool
	immediate int   // bytes
	word      bool  // an immediate word
	stack     bool  // the stack pointer changes
	parts     uint8 // the values of the part of the opcode in the operands, as bits; 0: there is no such part
	op        x86asm.Op
}

var layouts = [128]layout{
	'1': {known: true}, 'i': {known: true, immediate: 1}, 'z': {known: true, word: true},
	'm': {known: true, operands: true}, 'b': {known: true, operands: true, immediate: 1}, 'w': {known: true, operands: true, word: true},
	's': {known: true, stack: true}, 'S': {known: true, stack: true, immediate: 1}, 'Z': {known: true, stack: true, word: true},
	'e': {known: true, operands: true, parts: 0x03}, 'y': {known: true, operands: true, parts: 0x01, immediate: 1},
	'Y': {known: true, operands: true, parts: 0x01, word: true}, 'h': {known: true, operands: true, parts: 0xf0, immediate: 1},
	'n': {known: true, op: x86asm.NOP}, 't': {known: true, op: x86asm.INT}, 'N': {known: true, operands: true, op: x86asm.NOP}, 'v': {known: true, word: true},
}

var conditions = [16]x86asm.Op{x86asm.JO, x86asm.JNO, x86asm.JB, x86asm.JAE, x86asm.JE, x86asm.JNE, x86asm.JBE, x86asm.JA,
	x86asm.JS, x86asm.JNS, x86asm.JP, x86asm.JNP, x86asm.JL, x86asm.JGE, x86asm.JLE, x86asm.JG}

// decodeFlow decodes the instruction at the start of code as far as its control flow needs it; ok is false if it is
// unknown.
func decodeFlow(code []byte) (c machineCode, ok bool) {
	if c, ok = decodeQuick(code); ok {
		return c, true
	}
	inst, ok := decodeInstruction(code)
	c = machineCode{Op: inst.Op, Len: inst.Len, stack: inst.Op != 0, lea: inst.Op == x86asm.LEA}
	if to, direct := inst.Args[0].(x86asm.Rel); direct {
		c.direct, c.distance = true, int32(to)
	}
	return c, ok
}

// opcode is an instruction up to its opcode.
type opcode struct {
	code     []byte
	at       int // behind the opcode
	prefixes int
	rex      byte
	short    bool // an immediate word has 2 bytes
	class    byte
	part     byte // of the opcode in the operands
	low      byte // the last byte of the opcode
}

const (
	rexWide, rexReg, rexBase = 8, 4, 1 // bits of the prefix REX
	stackRegister            = 4
)

// decodeQuick decodes the usual instructions; ok is false for others, which may be valid.
func decodeQuick(code []byte) (c machineCode, ok bool) {
	const longest = 15
	o, ok := readOpcode(code)
	if !ok {
		return c, false
	}
	switch o.class {
	case 'r', 'j', 'q', 'k', 'J', 'c', 'f':
		return o.branch()
	case 'g', 'G':
		o.class = "mmbw"[o.testing()]
	case 'l':
		c.lea = true
		if o.class = 'm'; o.at >= len(code) || code[o.at]>>6 == 3 {
			return c, false
		}
	}
	l := layouts[o.class]
	if !l.known || l.parts != 0 && l.parts>>o.part&1 == 0 || o.prefixes > 0 && strings.IndexByte("SZnt", o.class) >= 0 {
		return c, false
	}
	c.Op, c.Len, c.stack = l.op, o.at+l.immediate, l.stack
	if l.operands {
		n := operandLength(code[min(o.at, len(code)):])
		if n == 0 {
			return c, false
		}
		c.stack = o.namesStack(code[o.at])
		c.Len += n
	}
	if l.word {
		c.Len += o.word()
	}
	c.stack = c.stack || o.class == 'v' && o.low&7 == stackRegister
	return c, c.Len <= len(code) && c.Len <= longest && (o.rex == 0 || l.operands || l.op == 0)
}

// readOpcode reads prefixes and opcode.
func readOpcode(code []byte) (o opcode, ok bool) {
	o.code = code
	for o.at < len(code) && firstMap[code[o.at]] == 'p' {
		o.short = o.short || code[o.at] == 0x66
		o.at++
	}
	o.prefixes = o.at
	if o.at < len(code) && code[o.at]&0xf0 == 0x40 {
		o.rex = code[o.at]
		o.at++
	}
	table := firstMap
	for o.at < len(code) {
		o.low = code[o.at]
		o.class = table[o.low]
		o.at++
		if o.class != 'x' {
			break
		}
		table = secondMap
	}
	if o.at < len(code) {
		o.part = code[o.at] >> 3 & 7
	}
	o.short = o.short && o.rex&rexWide == 0
	return o, o.class != 0 && o.class != 'x'
}

// word returns the size of an immediate word.
func (o *opcode) word() int {
	switch {
	case o.class == 'v' && o.rex&rexWide != 0:
		return 8
	case o.short:
		return 2
	}
	return 4
}

// testing returns the class of the opcodes F6 and F7, as an index: only the tests among them have an immediate value.
func (o *opcode) testing() int {
	switch {
	case o.part >= 2:
		return 0
	case o.class == 'g':
		return 2
	}
	return 3
}

// namesStack reports whether an operand is the stack pointer itself.
func (o *opcode) namesStack(modrm byte) bool {
	return modrm>>3&7 == stackRegister && o.rex&rexReg == 0 || modrm>>6 == 3 && modrm&7 == stackRegister && o.rex&rexBase == 0
}

// branch decodes a branch, call or return without unusual prefixes, and the other instructions with the opcode FF.
func (o *opcode) branch() (c machineCode, ok bool) {
	const repeat = 0xf3 // before a return it has no effect
	if o.prefixes > 0 && (o.class != 'r' || o.prefixes > 1 || o.code[0] != repeat) || o.rex != 0 && o.class != 'f' {
		return c, false
	}
	c.Len = o.at
	size := 4
	switch o.class {
	case 'r':
		c.Op = x86asm.RET
		return c, true
	case 'f':
		c.Op = map[byte]x86asm.Op{2: x86asm.CALL, 4: x86asm.JMP}[o.part]
		n := operandLength(o.code[min(o.at, len(o.code)):])
		if n == 0 || c.Op == 0 && o.part > 1 {
			return c, false
		}
		c.Len += n
		c.stack = o.namesStack(o.code[o.at])
		return c, c.Len <= len(o.code)
	case 'j', 'q':
		c.Op = conditions[o.low&0xf]
	case 'c':
		c.Op = x86asm.CALL
	default:
		c.Op = x86asm.JMP
	}
	if o.class == 'j' || o.class == 'k' {
		size = 1
	}
	if c.Len += size; c.Len > len(o.code) {
		return c, false
	}
	c.direct = true
	if size == 1 {
		c.distance = int32(int8(o.code[o.at]))
	} else {
		c.distance = int32(le32(o.code[o.at:]))
	}
	return c, true
}
