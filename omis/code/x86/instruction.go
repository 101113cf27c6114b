package x86

// wide is the prefix bit of operands of 64 bits.
const wide = 0x48

// instruction is one with a memory operand, or with a register in its place.
type instruction struct {
	prefix byte // 0: none
	wide   bool
	opcode uint16 // 0x0fNN: of two bytes
	field  Reg    // the register operand, or the part of the opcode that stands in its place
	imm    int32
	size   int // of imm in bytes
}

// begin encodes everything up to the operands.
func (c *Code) begin(in *instruction, segment bool, index, base Reg) {
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

func (c *Code) immediate(in *instruction) {
	switch in.size {
	case 1:
		c.emit(byte(in.imm))
	case 4:
		c.emit32(uint32(in.imm))
	}
}

// withReg completes an instruction by a register.
func (c *Code) withReg(in instruction, r Reg) {
	c.begin(&in, false, 0, r)
	c.emit(0xc0 | byte(in.field&7)<<3 | byte(r&7))
	c.immediate(&in)
}

// Parts of instructions that say how memory is addressed.
const (
	withSIB   = 4
	withRIP   = 5
	noBase    = 0x25
	onlyRSP   = 0x24
	plusByte  = 0x40
	plusFour  = 0x80
	fieldFrom = 3 // bit
)

// withMem completes an instruction by a place in memory. Distances relative to the code
// always take four bytes: the length must not depend on where things are.
func (c *Code) withMem(in instruction, m Mem) {
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

// modrm addresses memory by registers.
func (c *Code) modrm(reg byte, m Mem) {
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

// immediate picks the shorter of two encodings: of a sign-extended byte, or of four.
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

// Load, Load32 and Load8 load 64 bits, or fewer and zeros above them.
func (c *Code) Load(to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: 0x8b, field: to}, from)
}
func (c *Code) Load32(to Reg, from Mem) {
	c.withMem(instruction{opcode: 0x8b, field: to}, from)
}
func (c *Code) Load8(to Reg, from Mem) {
	c.withMem(instruction{opcode: 0x0fb6, field: to}, from)
}

// LoadSigned8 loads 8 bits with their sign.
func (c *Code) LoadSigned8(to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: 0x0fbe, field: to}, from)
}

// Store and Store32 write a register, StoreImm a number, as 64 bits.
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

// Do works on two registers.
func (c *Code) Do(op Op, to, from Reg) {
	c.withReg(instruction{wide: true, opcode: uint16(op)<<3 | 1, field: from}, to)
}

// DoImm works on a register and a number; DoImm32 on its lower half, and clears the
// upper.
func (c *Code) DoImm(op Op, to Reg, v int32) { c.doImm(op, to, v, true) }
func (c *Code) DoImm32(op Op, to Reg, v int32) {
	c.doImm(op, to, v, false)
}

func (c *Code) doImm(op Op, to Reg, v int32, wide bool) {
	in := immediate(op, v)
	in.wide = wide
	c.withReg(in, to)
}

// DoLoad works on a register and memory, DoStore on memory and a register, with the
// result in the former.
func (c *Code) DoLoad(op Op, to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: uint16(op)<<3 | 3, field: to}, from)
}
func (c *Code) DoStore(op Op, to Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: uint16(op)<<3 | 1, field: from}, to)
}

// DoLoad32 is DoLoad on 32 bits.
func (c *Code) DoLoad32(op Op, to Reg, from Mem) {
	c.withMem(instruction{opcode: uint16(op)<<3 | 3, field: to}, from)
}

// DoStoreImm works on memory and a number.
func (c *Code) DoStoreImm(op Op, to Mem, v int32) {
	in := immediate(op, v)
	in.wide = true
	c.withMem(in, to)
}

// CmpByte compares a byte of memory with a number.
func (c *Code) CmpByte(m Mem, v int8) {
	c.withMem(instruction{opcode: 0x80, field: Reg(Cmp), imm: int32(v), size: 1}, m)
}

// Inc adds one to memory. It leaves the carry alone.
func (c *Code) Inc(m Mem) { c.withMem(instruction{wide: true, opcode: 0xff}, m) }

// DecReg32 takes one from the lower half of a register.
func (c *Code) DecReg32(r Reg) { c.withReg(instruction{opcode: 0xff, field: 1}, r) }

// Shl shifts a register, Shl32 its lower half, to the left.
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

// ShrByCL shifts a register to the right by as many bits as the lowest byte of RCX says.
func (c *Code) ShrByCL(r Reg) { c.withReg(instruction{wide: true, opcode: 0xd3, field: 5}, r) }

// ShlByCL shifts a register to the left by as many bits as the lowest byte of RCX says.
func (c *Code) ShlByCL(r Reg) { c.withReg(instruction{wide: true, opcode: 0xd3, field: 4}, r) }

// ShlDouble shifts a register to the left, and fills it with the upper bits of another.
func (c *Code) ShlDouble(r, from Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: 0x0fa4, field: from, imm: int32(bits), size: 1}, r)
}

// HighestBit loads the number of the highest bit of a register that is set; there must be
// one. (bsr, which every processor has.)
func (c *Code) HighestBit(r, from Reg) {
	c.withReg(instruction{wide: true, opcode: 0x0fbd, field: r}, from)
}

// SignExtend makes 64 bits of the lower 32 of a register, with their sign.
func (c *Code) SignExtend(r Reg) { c.withReg(instruction{wide: true, opcode: 0x63, field: r}, r) }

// Not inverts the bits of a register.
func (c *Code) Not(r Reg) { c.withReg(instruction{wide: true, opcode: 0xf7, field: 2}, r) }

// Imul multiplies a register by another; ImulImm multiplies it by a number.
func (c *Code) Imul(r, by Reg) { c.withReg(instruction{wide: true, opcode: 0x0faf, field: r}, by) }
func (c *Code) ImulImm(r Reg, v int32) {
	c.withReg(instruction{wide: true, opcode: 0x69, field: r, imm: v, size: 4}, r)
}

// MulMem multiplies RAX by memory; the product is in RDX and RAX.
func (c *Code) MulMem(m Mem) { c.withMem(instruction{wide: true, opcode: 0xf7, field: 4}, m) }

// Call calls the function at the address in a register.
func (c *Code) Call(r Reg) { c.withReg(instruction{opcode: 0xff, field: 2}, r) }

// LoadVector and StoreVector move the lower 128 bits of a vector register.
func (c *Code) LoadVector(n Reg, m Mem)  { c.withMem(instruction{opcode: 0x0f10, field: n}, m) }
func (c *Code) StoreVector(m Mem, n Reg) { c.withMem(instruction{opcode: 0x0f11, field: n}, m) }

// Mul multiplies RAX by a register; the product is in RDX and RAX.
func (c *Code) Mul(r Reg) { c.withReg(instruction{wide: true, opcode: 0xf7, field: 4}, r) }

// MulReg multiplies a register by another; what is beyond 64 bits is lost.
func (c *Code) MulReg(to, by Reg) { c.withReg(instruction{wide: true, opcode: 0x0faf, field: to}, by) }

// Zero clears a register.
func (c *Code) Zero(r Reg) {
	in := instruction{opcode: 0x31, field: r}
	c.withReg(in, r)
}

// Test sets the zero flag if a register is zero.
func (c *Code) Test(r Reg) { c.withReg(instruction{wide: true, opcode: 0x85, field: r}, r) }

// Swap replaces the memory by a register if it is what RAX is, and loads RAX from it if
// not. No signal comes in between, but other threads may.
func (c *Code) Swap(m Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: 0x0fb1, field: from}, m)
}

const lock = 0xf0

// LockedSwap is Swap of which other threads see all or nothing.
func (c *Code) LockedSwap(m Mem, from Reg) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0x0fb1, field: from}, m)
}

// Lock has other threads see all or nothing of the instruction that comes next.
func (c *Code) Lock() { c.emit(lock) }

// LockedInc is Inc of which other threads see all or nothing.
func (c *Code) LockedInc(m Mem) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0xff}, m)
}

// FetchAdd adds a register to memory and loads it with what was there. No signal comes in
// between, but other threads may.
func (c *Code) FetchAdd(m Mem, r Reg) {
	c.withMem(instruction{wide: true, opcode: 0x0fc1, field: r}, m)
}

// LockedFetchAdd is FetchAdd of which other threads see all or nothing.
func (c *Code) LockedFetchAdd(m Mem, r Reg) {
	c.withMem(instruction{prefix: lock, wide: true, opcode: 0x0fc1, field: r}, m)
}

// SaveFlags puts the flags of comparisons and of arithmetic into AX, RestoreFlags takes
// them from there. What pushf does costs ten times as much.
func (c *Code) SaveFlags()    { c.emit(0x9f, 0x0f, 0x90, 0xc0) } // lahf; seto %al
func (c *Code) RestoreFlags() { c.emit(0x04, 0x7f, 0x9e) }       // add $127, %al; sahf

// ReadClock reads the time stamp counter into RDX and RAX; ReadClockOrdered waits for
// all instructions before it, and loads RCX as well.
func (c *Code) ReadClock()        { c.emit(0x0f, 0x31) }
func (c *Code) ReadClockOrdered() { c.emit(0x0f, 0x01, 0xf9) }

// Fence waits for all instructions before it to be done.
func (c *Code) Fence() { c.emit(0x0f, 0xae, 0xe8) }

// ReadFSBase reads the thread's pointer. It takes a kernel that allows it.
func (c *Code) ReadFSBase(r Reg) {
	c.withReg(instruction{prefix: 0xf3, wide: true, opcode: 0x0fae}, r)
}
