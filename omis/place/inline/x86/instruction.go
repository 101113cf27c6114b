package x86

import "encoding/binary"

// wide is the prefix bit of operands of 64 bits.
const wide = 0x48

// instruction is one with a memory operand, or with a register in its place.
type instruction struct {
	prefix []byte // before everything
	wide   bool
	opcode []byte
	field  Reg // the register operand, or the part of the opcode that stands in its place
	imm    []byte
}

// withReg completes an instruction by a register.
func (c *Code) withReg(in instruction, r Reg) {
	b := append(in.prefix, in.rex(0, r)...)
	b = append(b, in.opcode...)
	c.emit(append(append(b, 0xc0|byte(in.field&7)<<3|byte(r&7)), in.imm...)...)
}

// rex is the prefix that has the fourth bits of the registers.
func (in *instruction) rex(index, base Reg) []byte {
	rex := byte(in.field>>3)<<2 | byte(index>>3)<<1 | byte(base>>3)
	if in.wide {
		rex |= wide
	}
	if rex == 0 {
		return nil
	}
	return []byte{rex | 0x40}
}

// withMem completes an instruction by a place in memory. Distances always take four
// bytes: the length must not depend on where things are.
func (c *Code) withMem(in instruction, m Mem) {
	b := append([]byte(nil), in.prefix...)
	if m.kind == inFS {
		b = append(b, 0x64)
	}
	var index, base Reg
	if m.kind == based || m.kind == indexed {
		base = m.base
	}
	if m.kind == indexed {
		index = m.index
	}
	b = append(append(b, in.rex(index, base)...), in.opcode...)
	reg := byte(in.field&7) << 3
	const sib = 4
	p := piece{extra: m.disp}
	switch m.kind {
	case based, indexed:
		b = append(b, in.modrm(reg, m)...)
	case inFS:
		b = append(b, reg|sib, 0x25)
		b = binary.LittleEndian.AppendUint32(b, uint32(m.disp))
	case absolute, inCode:
		b = append(b, reg|5)
		p.kind, p.field, p.addr, p.to = toAddress, len(b), m.addr, m.label
		if p.extra = 0; m.kind == inCode {
			p.kind, p.extra = toLabel, m.disp
		}
		b = append(b, 0, 0, 0, 0)
	}
	p.bytes = append(b, in.imm...)
	c.append(p)
}

// modrm is the part of an instruction that says how memory is addressed by registers.
func (in *instruction) modrm(reg byte, m Mem) []byte {
	const sib = 4
	var b []byte
	mod := byte(0x80)
	switch {
	case m.disp == 0 && m.base&7 != RBP:
		mod = 0
	case isByte(int(m.disp)):
		mod = 0x40
	}
	switch {
	case m.kind == indexed:
		b = append(b, mod|reg|sib, byte(m.index&7)<<3|byte(m.base&7))
	case m.base&7 == RSP:
		b = append(b, mod|reg|sib, 0x24)
	default:
		b = append(b, mod|reg|byte(m.base&7))
	}
	switch mod {
	case 0x40:
		b = append(b, byte(m.disp))
	case 0x80:
		b = binary.LittleEndian.AppendUint32(b, uint32(m.disp))
	}
	return b
}

func imm32(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

// immediate picks the shorter of two encodings: of a sign-extended byte, or of four.
func immediate(v int32) (opcode byte, imm []byte) {
	if isByte(int(v)) {
		return 0x83, []byte{byte(v)}
	}
	return 0x81, imm32(v)
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
	c.withReg(instruction{wide: true, opcode: []byte{0x89}, field: from}, to)
}

// MovImm loads a number.
func (c *Code) MovImm(to Reg, v uint64) {
	if v == uint64(uint32(v)) {
		b := []byte{0xb8 | byte(to&7)}
		if to >= R8 {
			b = []byte{0x41, 0xb8 | byte(to&7)}
		}
		c.emit(binary.LittleEndian.AppendUint32(b, uint32(v))...)
		return
	}
	b := []byte{wide | byte(to>>3), 0xb8 | byte(to&7)}
	c.emit(binary.LittleEndian.AppendUint64(b, v)...)
}

// Load, Load32 and Load8 load 64 bits, or fewer and zeros above them.
func (c *Code) Load(to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: []byte{0x8b}, field: to}, from)
}
func (c *Code) Load32(to Reg, from Mem) {
	c.withMem(instruction{opcode: []byte{0x8b}, field: to}, from)
}
func (c *Code) Load8(to Reg, from Mem) {
	c.withMem(instruction{opcode: []byte{0x0f, 0xb6}, field: to}, from)
}

// Store and Store32 write a register, StoreImm a number, as 64 bits.
func (c *Code) Store(to Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: []byte{0x89}, field: from}, to)
}
func (c *Code) Store32(to Mem, from Reg) {
	c.withMem(instruction{opcode: []byte{0x89}, field: from}, to)
}
func (c *Code) StoreImm(to Mem, v int32) {
	c.withMem(instruction{wide: true, opcode: []byte{0xc7}, imm: imm32(v)}, to)
}

// Lea loads an address.
func (c *Code) Lea(to Reg, m Mem) {
	c.withMem(instruction{wide: true, opcode: []byte{0x8d}, field: to}, m)
}

// Do works on two registers.
func (c *Code) Do(op Op, to, from Reg) {
	c.withReg(instruction{wide: true, opcode: []byte{byte(op)<<3 | 1}, field: from}, to)
}

// DoImm works on a register and a number; DoImm32 on its lower half, and clears the
// upper.
func (c *Code) DoImm(op Op, to Reg, v int32) { c.doImm(op, to, v, true) }
func (c *Code) DoImm32(op Op, to Reg, v int32) {
	c.doImm(op, to, v, false)
}

func (c *Code) doImm(op Op, to Reg, v int32, wide bool) {
	opcode, imm := immediate(v)
	c.withReg(instruction{wide: wide, opcode: []byte{opcode}, field: Reg(op), imm: imm}, to)
}

// DoLoad works on a register and memory, DoStore on memory and a register, with the
// result in the former.
func (c *Code) DoLoad(op Op, to Reg, from Mem) {
	c.withMem(instruction{wide: true, opcode: []byte{byte(op)<<3 | 3}, field: to}, from)
}
func (c *Code) DoStore(op Op, to Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: []byte{byte(op)<<3 | 1}, field: from}, to)
}

// DoLoad32 is DoLoad on 32 bits.
func (c *Code) DoLoad32(op Op, to Reg, from Mem) {
	c.withMem(instruction{opcode: []byte{byte(op)<<3 | 3}, field: to}, from)
}

// DoStoreImm works on memory and a number.
func (c *Code) DoStoreImm(op Op, to Mem, v int32) {
	opcode, imm := immediate(v)
	c.withMem(instruction{wide: true, opcode: []byte{opcode}, field: Reg(op), imm: imm}, to)
}

// CmpByte compares a byte of memory with a number.
func (c *Code) CmpByte(m Mem, v int8) {
	c.withMem(instruction{opcode: []byte{0x80}, field: Reg(Cmp), imm: []byte{byte(v)}}, m)
}

// Inc adds one to memory. It leaves the carry alone.
func (c *Code) Inc(m Mem) { c.withMem(instruction{wide: true, opcode: []byte{0xff}}, m) }

// DecReg32 takes one from the lower half of a register.
func (c *Code) DecReg32(r Reg) { c.withReg(instruction{opcode: []byte{0xff}, field: 1}, r) }

// Shl shifts a register, Shl32 its lower half, to the left.
func (c *Code) Shl(r Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: []byte{0xc1}, field: 4, imm: []byte{bits}}, r)
}
func (c *Code) Shl32(r Reg, bits uint8) {
	c.withReg(instruction{opcode: []byte{0xc1}, field: 4, imm: []byte{bits}}, r)
}

// Shr shifts a register to the right.
func (c *Code) Shr(r Reg, bits uint8) {
	c.withReg(instruction{wide: true, opcode: []byte{0xc1}, field: 5, imm: []byte{bits}}, r)
}

// Not inverts the bits of a register.
func (c *Code) Not(r Reg) { c.withReg(instruction{wide: true, opcode: []byte{0xf7}, field: 2}, r) }

// Mul multiplies RAX by a register; the product is in RDX and RAX.
func (c *Code) Mul(r Reg) { c.withReg(instruction{wide: true, opcode: []byte{0xf7}, field: 4}, r) }

// Zero clears a register.
func (c *Code) Zero(r Reg) {
	in := instruction{opcode: []byte{0x31}, field: r}
	c.withReg(in, r)
}

// Test sets the zero flag if a register is zero.
func (c *Code) Test(r Reg) { c.withReg(instruction{wide: true, opcode: []byte{0x85}, field: r}, r) }

// Swap replaces the memory by a register if it is what RAX is, and loads RAX from it if
// not. No signal comes in between, but other threads may.
func (c *Code) Swap(m Mem, from Reg) {
	c.withMem(instruction{wide: true, opcode: []byte{0x0f, 0xb1}, field: from}, m)
}

const lock = 0xf0

// LockedSwap is Swap of which other threads see all or nothing.
func (c *Code) LockedSwap(m Mem, from Reg) {
	c.withMem(instruction{prefix: []byte{lock}, wide: true, opcode: []byte{0x0f, 0xb1}, field: from}, m)
}

// LockedInc is Inc of which other threads see all or nothing.
func (c *Code) LockedInc(m Mem) {
	c.withMem(instruction{prefix: []byte{lock}, wide: true, opcode: []byte{0xff}}, m)
}

// LockedFetchAdd adds a register to memory and loads it with what was there.
func (c *Code) LockedFetchAdd(m Mem, r Reg) {
	c.withMem(instruction{prefix: []byte{lock}, wide: true, opcode: []byte{0x0f, 0xc1}, field: r}, m)
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
	c.withReg(instruction{prefix: []byte{0xf3}, wide: true, opcode: []byte{0x0f, 0xae}}, r)
}
