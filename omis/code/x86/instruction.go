package x86

// wide is the REX prefix for 64-bit operands.
const wide = 0x48

// instruction has a memory operand, or a register instead.
type instruction struct {
	prefix byte // 0 if none
	wide   bool
	opcode uint16 // 0x0fNN means two bytes
	field  Reg    // the register operand, or an extension of the opcode
	imm    int32
	size   int // of imm in bytes
}

// begin encodes everything before the operands.
func (c *encoder) begin(in *instruction, segment bool, index, base Reg) {
	if in.prefix != 0 {
		c.emit(in.prefix)
	}
	if segment {
		c.emit(0x64)
	}
	rex := byte(in.field>>3)<<2 | byte(index>>3)<<1 | byte(base>>3)
	if in.wide {
		rex |= wide
	}
	if rex != 0 {
		c.emit(rex | 0x40)
	}
	if in.opcode >= 0x0f00 {
		c.emit(0x0f)
	}
	c.emit(byte(in.opcode))
}

func (c *encoder) immediate(in *instruction) {
	switch in.size {
	case 1:
		c.emit(byte(in.imm))
	case 4:
		c.emit32(uint32(in.imm))
	}
}

// withReg completes an instruction with a register operand.
func (c *encoder) withReg(in instruction, r Reg) {
	c.begin(&in, false, 0, r)
	c.emit(0xc0 | byte(in.field&7)<<3 | byte(r&7))
	c.immediate(&in)
}

// Parts of ModRM and SIB bytes.
const (
	withSIB   = 4
	withRIP   = 5
	noBase    = 0x25
	onlyRSP   = 0x24
	plusByte  = 0x40
	plusFour  = 0x80
	fieldFrom = 3 // position of the field
)

// withMem completes an instruction with a memory operand. Distances relative to the code
// always take four bytes, because the length must not depend on addresses.
func (c *encoder) withMem(in instruction, m Mem) {
	reg := byte(in.field&7) << fieldFrom
	switch m.kind {
	case based:
		c.begin(&in, false, 0, m.base)
		c.modrm(reg, m)
	case indexed:
		c.begin(&in, false, m.index, m.base)
		c.modrm(reg, m)
	case inFS:
		c.begin(&in, true, 0, 0)
		c.emit(reg|withSIB, noBase)
		c.emit32(uint32(m.disp))
	case absolute:
		c.begin(&in, false, 0, 0)
		c.emit(reg | withRIP)
		c.leave(gap{kind: toAddress, addr: m.addr}, in.size)
	case inCode:
		c.begin(&in, false, 0, 0)
		c.emit(reg | withRIP)
		c.leave(gap{label: m.label, extra: m.disp}, in.size)
	}
	c.immediate(&in)
}

// modrm encodes memory addressed by registers.
func (c *encoder) modrm(reg byte, m Mem) {
	mod := byte(plusFour)
	switch {
	case m.disp == 0 && m.base&7 != RBP:
		mod = 0
	case isByte(m.disp):
		mod = plusByte
	}
	switch {
	case m.kind == indexed:
		c.emit(mod|reg|withSIB, byte(m.index&7)<<fieldFrom|byte(m.base&7))
	case m.base&7 == RSP:
		c.emit(mod|reg|withSIB, onlyRSP)
	default:
		c.emit(mod | reg | byte(m.base&7))
	}
	switch mod {
	case plusByte:
		c.emit(byte(m.disp))
	case plusFour:
		c.emit32(uint32(m.disp))
	}
}

func isByte(d int32) bool { return d == int32(int8(d)) }

// immediate chooses the shorter of two encodings: a sign-extended byte, or four bytes.
func immediate(op Op, v int32) instruction {
	if isByte(v) {
		return instruction{opcode: 0x83, field: Reg(op), imm: v, size: 1}
	}
	return instruction{opcode: 0x81, field: Reg(op), imm: v, size: 4}
}

// Push and Pop move registers to the stack and back.
func (c *Code) Push(r Reg) { c.stack(0x50, r) }
func (c *Code) Pop(r Reg)  { c.stack(0x58, r) }

func (c *Code) stack(opcode byte, r Reg) {
	if r >= R8 {
		c.emit(0x41, opcode|byte(r&7))
		return
	}
	c.emit(opcode | byte(r))
}

// Mov copies a register.
func (c *Code) Mov(to, from Reg) {
	c.withReg(instruction{wide: true, opcode: 0x89, field: from}, to)
}

// MovImm loads a number.
func (c *Code) MovImm(to Reg, v uint64) {
	if v == uint64(uint32(v)) {
		if to >= R8 {
			c.emit(0x41)
		}
		c.emit(0xb8 | byte(to&7))
		c.emit32(uint32(v))
		return
	}
	c.emit(wide|byte(to>>3), 0xb8|byte(to&7))
	c.emit64(v)
}

// Load, Load32 and Load8 load 64, 32 or 8 bits and clear the bits above.
func (c *Code) Load(to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: 0x8b, field: to}, from)
}
func (c *Code) Load32(to Reg, from Mem) {
	c.withMem(instruction{opcode: 0x8b, field: to}, from)
}
func (c *Code) Load8(to Reg, from Mem) {
	c.withMem(instruction{opcode: 0x0fb6, field: to}, from)
}

// LoadSigned8 loads 8 bits and extends their sign.
func (c *Code) LoadSigned8(to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: 0x0fbe, field: to}, from)
}

// Store and Store32 store 64 or 32 bits of a register; StoreImm stores a number as 64
// bits.
func (c *Code) Store(to Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: 0x89, field: from}, to)
}
func (c *Code) Store32(to Mem, from Reg) {
	c.withMem(instruction{opcode: 0x89, field: from}, to)
}
func (c *Code) StoreImm(to Mem, v int32) {
	c.withMem(instruction{wide: true, opcode: 0xc7, imm: v, size: 4}, to)
}

// Lea loads an address.
func (c *Code) Lea(to Reg, m Mem) {
	c.withMem(instruction{wide: true, opcode: 0x8d, field: to}, m)
}

// Do executes an operation on two registers.
func (c *Code) Do(op Op, to, from Reg) {
	c.withReg(instruction{wide: true, opcode: uint16(op)<<3 | 1, field: from}, to)
}

// DoImm executes an operation on a register and a number; DoImm32 on the lower half of a
// register, and clears the upper half.
func (c *Code) DoImm(op Op, to Reg, v int32) { c.doImm(op, to, v, true) }
func (c *Code) DoImm32(op Op, to Reg, v int32) {
	c.doImm(op, to, v, false)
}

func (c *Code) doImm(op Op, to Reg, v int32, wide bool) {
	in := immediate(op, v)
	in.wide = wide
	c.withReg(in, to)
}

// DoLoad executes an operation on a register and memory, DoStore on memory and a
// register; the result goes to the first operand.
func (c *Code) DoLoad(op Op, to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: uint16(op)<<3 | 3, field: to}, from)
}
func (c *Code) DoStore(op Op, to Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: uint16(op)<<3 | 1, field: from}, to)
}

// DoLoad32 executes an operation on a register and memory of 32 bits.
func (c *Code) DoLoad32(op Op, to Reg, from Mem) {
	c.withMem(instruction{opcode: uint16(op)<<3 | 3, field: to}, from)
}

// DoStoreImm executes an operation on memory and a number.
func (c *Code) DoStoreImm(op Op, to Mem, v int32) {
	in := immediate(op, v)
	in.wide = true
	c.withMem(in, to)
}

// CmpByte compares a byte of memory with a number.
func (c *Code) CmpByte(m Mem, v int8) {
	c.withMem(instruction{opcode: 0x80, field: Reg(Cmp), imm: int32(v), size: 1}, m)
}

// Inc adds one to memory. It preserves the carry flag.
func (c *Code) Inc(m Mem) { c.withMem(instruction{wide: true, opcode: 0xff}, m) }

// DecReg32 subtracts one from the lower half of a register.
func (c *Code) DecReg32(r Reg) { c.withReg(instruction{opcode: 0xff, field: 1}, r) }

// Shl shifts a register to the left, Shl32 its lower half.
func (c *Code) Shl(r Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: 0xc1, field: 4, imm: int32(bits), size: 1}, r)
}
func (c *Code) Shl32(r Reg, bits uint8) {
	c.withReg(instruction{opcode: 0xc1, field: 4, imm: int32(bits), size: 1}, r)
}

// Shr shifts a register to the right.
func (c *Code) Shr(r Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: 0xc1, field: 5, imm: int32(bits), size: 1}, r)
}

// ShrByCL shifts a register to the right by the number of bits in CL.
func (c *Code) ShrByCL(r Reg) { c.withReg(instruction{wide: true, opcode: 0xd3, field: 5}, r) }

// ShlByCL shifts a register to the left by the number of bits in CL.
func (c *Code) ShlByCL(r Reg) { c.withReg(instruction{wide: true, opcode: 0xd3, field: 4}, r) }

// ShlDouble shifts a register to the left, and fills it with the upper bits of another
// one.
func (c *Code) ShlDouble(r, from Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: 0x0fa4, field: from, imm: int32(bits), size: 1}, r)
}

// HighestBit loads the number of the highest bit that is set in a register, which must
// not be zero. It uses bsr, which every processor has.
func (c *Code) HighestBit(r, from Reg) {
	c.withReg(instruction{wide: true, opcode: 0x0fbd, field: r}, from)
}

// SignExtend extends the sign of the lower 32 bits of a register to 64 bits.
func (c *Code) SignExtend(r Reg) { c.withReg(instruction{wide: true, opcode: 0x63, field: r}, r) }

// Not inverts the bits of a register.
func (c *Code) Not(r Reg) { c.withReg(instruction{wide: true, opcode: 0xf7, field: 2}, r) }

// Imul multiplies a register by another one, ImulMem by memory, ImulImm by a number.
func (c *Code) Imul(r, by Reg) { c.withReg(instruction{wide: true, opcode: 0x0faf, field: r}, by) }
func (c *Code) ImulMem(r Reg, by Mem) {
	c.withMem(instruction{wide: true, opcode: 0x0faf, field: r}, by)
}
func (c *Code) ImulImm(r Reg, v int32) {
	c.withReg(instruction{wide: true, opcode: 0x69, field: r, imm: v, size: 4}, r)
}

// MulMem multiplies RAX by memory; the product is in RDX and RAX.
func (c *Code) MulMem(m Mem) { c.withMem(instruction{wide: true, opcode: 0xf7, field: 4}, m) }

// Call calls the function whose address is in a register.
func (c *Code) Call(r Reg) { c.withReg(instruction{opcode: 0xff, field: 2}, r) }

// LoadVector and StoreVector load and store the lower 128 bits of a vector register.
func (c *Code) LoadVector(n Reg, m Mem)  { c.withMem(instruction{opcode: 0x0f10, field: n}, m) }
func (c *Code) StoreVector(m Mem, n Reg) { c.withMem(instruction{opcode: 0x0f11, field: n}, m) }

// Mul multiplies RAX by a register; the product is in RDX and RAX.
func (c *Code) Mul(r Reg) { c.withReg(instruction{wide: true, opcode: 0xf7, field: 4}, r) }

// Zero clears a register.
func (c *Code) Zero(r Reg) {
	in := instruction{opcode: 0x31, field: r}
	c.withReg(in, r)
}

// Test sets the zero flag if a register is zero.
func (c *Code) Test(r Reg) { c.withReg(instruction{wide: true, opcode: 0x85, field: r}, r) }

// Swap compares memory with RAX; if they are equal, it stores a register there, else it
// loads RAX from there (cmpxchg). It is atomic for signal handlers, but not for other
// threads.
func (c *Code) Swap(m Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: 0x0fb1, field: from}, m)
}

const lock = 0xf0

// LockedSwap does what Swap does, and is atomic for other threads too.
func (c *Code) LockedSwap(m Mem, from Reg) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0x0fb1, field: from}, m)
}

// Lock makes the next instruction atomic for other threads.
func (c *Code) Lock() { c.emit(lock) }

// LockedInc does what Inc does, and is atomic for other threads too.
func (c *Code) LockedInc(m Mem) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0xff}, m)
}

// FetchAdd adds a register to memory and loads the register with the old value of the
// memory. It is atomic for signal handlers, but not for other threads.
func (c *Code) FetchAdd(m Mem, r Reg) {
	c.withMem(instruction{wide: true, opcode: 0x0fc1, field: r}, m)
}

// LockedFetchAdd does what FetchAdd does, and is atomic for other threads too.
func (c *Code) LockedFetchAdd(m Mem, r Reg) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0x0fc1, field: r}, m)
}

// SaveFlags saves the flags of comparisons and arithmetic in AX, and RestoreFlags
// restores them from there. pushf and popf would cost ten times as much.
func (c *Code) SaveFlags()    { c.emit(0x9f, 0x0f, 0x90, 0xc0) } // lahf; seto %al
func (c *Code) RestoreFlags() { c.emit(0x04, 0x7f, 0x9e) }       // add $127, %al; sahf

// ReadClock reads the time stamp counter into RDX and RAX. ReadClockOrdered waits for all
// preceding instructions, and also changes RCX.
func (c *Code) ReadClock()        { c.emit(0x0f, 0x31) }
func (c *Code) ReadClockOrdered() { c.emit(0x0f, 0x01, 0xf9) }

// Fence waits for all preceding instructions.
func (c *Code) Fence() { c.emit(0x0f, 0xae, 0xe8) }

// ReadFSBase reads the thread pointer. The kernel must permit it.
func (c *Code) ReadFSBase(r Reg) {
	c.withReg(instruction{prefix: 0xf3, wide: true, opcode: 0x0fae}, r)
}
