package x86

// Reg is a general register.
type Reg uint8

// Registers in the order of their numbers.
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// Mem is a memory operand.
type Mem struct {
	kind  memKind
	base  Reg
	index Reg // only if indexed
	disp  int32
	addr  uint64 // only if absolute
	label Label  // only if inCode
}

type memKind uint8

const (
	based    memKind = iota // disp(base)
	indexed                 // disp(base,index)
	absolute                // an address within 2 GB of the code
	inCode                  // a label of the code
	inFS                    // fs:disp
)

// At is the memory at a distance from the address in a register.
func At(base Reg, disp int32) Mem { return Mem{kind: based, base: base, disp: disp} }

// Sum is the memory at a distance from the sum of two registers; index must not be RSP.
func Sum(base, index Reg, disp int32) Mem {
	return Mem{kind: indexed, base: base, index: index, disp: disp}
}

// Abs is the memory at an address within 2 GB of the code.
func Abs(addr uint64) Mem { return Mem{kind: absolute, addr: addr} }

// In is the memory at a label of the code itself.
func In(l Label) Mem { return Mem{kind: inCode, label: l} }

// FS is the memory at a distance from the thread pointer.
func FS(disp int32) Mem { return Mem{kind: inFS, disp: disp} }

// Plus is the memory the given number of bytes further on.
func (m Mem) Plus(bytes int32) Mem {
	m.disp += bytes
	m.addr += uint64(int64(bytes))
	return m
}

// Cond is a condition of the flags.
type Cond uint8

// Conditions with their numbers; comparisons are unsigned.
const (
	IfOverflow     Cond = 0x0
	IfBelow        Cond = 0x2
	IfAboveOrEqual Cond = 0x3
	IfEqual        Cond = 0x4
	IfNot          Cond = 0x5 // not equal, or not zero
	IfBelowOrEqual Cond = 0x6
	IfAbove        Cond = 0x7
	IfNegative     Cond = 0x8 // the sign flag is set
	IfNotNegative  Cond = 0x9
)

// Op is an operation on two operands.
type Op uint8

// Operations with their numbers.
const (
	Add Op = 0
	Or  Op = 1
	Adc Op = 2
	And Op = 4
	Sub Op = 5
	Xor Op = 6
	Cmp Op = 7
)
