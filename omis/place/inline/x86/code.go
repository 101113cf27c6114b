package x86

import (
	"encoding/binary"
	"fmt"
)

// Label is a place in a code that can be jumped to.
type Label int

// Code is a sequence of instructions that is being made. Instructions come in order;
// Bytes says what they are once it is known where they stand.
//
// It has parts, which are made in any order and stand in that of their numbers.
type Code struct {
	parts  [][]piece
	part   int // where the next instructions stand
	labels []place
}

// place is before a piece of a part.
type place struct{ part, piece int }

// Part has the next instructions stand in a part.
func (c *Code) Part(n int) {
	for len(c.parts) <= n {
		c.parts = append(c.parts, nil)
	}
	c.part = n
}

func (c *Code) append(p piece) {
	c.Part(c.part)
	c.parts[c.part] = append(c.parts[c.part], p)
}

// piece is an instruction, or data.
type piece struct {
	kind  pieceKind
	bytes []byte
	cond  Cond
	to    Label  // jump, or a reference to a label
	addr  uint64 // a reference to an address
	field int    // where in bytes the four of a reference are
	extra int32  // added to what is referred to
	long  bool   // a jump of 32 bits
}

type pieceKind uint8

const (
	plain pieceKind = iota
	jump
	jumpIf
	jumpIfRCXZero
	toAddress
	toLabel
)

// NewLabel makes a label that stands nowhere yet.
func (c *Code) NewLabel() Label {
	c.labels = append(c.labels, place{})
	return Label(len(c.labels) - 1)
}

// Here puts a label before what comes next.
func (c *Code) Here(l Label) {
	c.Part(c.part)
	c.labels[l] = place{c.part, len(c.parts[c.part])}
}

func (c *Code) emit(b ...byte) { c.append(piece{bytes: b}) }

// Jump goes to a label.
func (c *Code) Jump(to Label) { c.append(piece{kind: jump, to: to}) }

// JumpIf goes to a label on a condition.
func (c *Code) JumpIf(cond Cond, to Label) {
	c.append(piece{kind: jumpIf, cond: cond, to: to})
}

// JumpIfRCXZero goes to a label where RCX is zero, and asks no flags. The label must be
// within 127 bytes.
func (c *Code) JumpIfRCXZero(to Label) {
	c.append(piece{kind: jumpIfRCXZero, to: to})
}

// Data puts eight bytes into the code.
func (c *Code) Data(v uint64) { c.emit(binary.LittleEndian.AppendUint64(nil, v)...) }

func (p *piece) size() int {
	switch {
	case p.kind == jump && p.long:
		return 5
	case p.kind == jumpIf && p.long:
		return 6
	case p.kind == jump, p.kind == jumpIf, p.kind == jumpIfRCXZero:
		return 2
	}
	return len(p.bytes)
}

// Bytes encodes the code for an address. How many they are does not depend on it.
func (c *Code) Bytes(at uint64) ([]byte, error) {
	all, labels := c.join()
	starts := layOut(all, labels)
	var out []byte
	for i := range all {
		b, err := all[i].encode(at, starts[i], func(l Label) int { return starts[labels[l]] })
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// join puts the parts one behind the other; labels are the pieces that they stand before.
func (c *Code) join() (all []piece, labels []int) {
	begins := make([]int, len(c.parts))
	for i, part := range c.parts {
		begins[i] = len(all)
		all = append(all, part...)
	}
	for _, l := range c.labels {
		labels = append(labels, begins[l.part]+l.piece)
	}
	return all, labels
}

// layOut finds out which jumps have to be long, and where the pieces begin; one more
// says where the code ends.
func layOut(all []piece, labels []int) []int {
	starts := make([]int, len(all)+1)
	for again := true; again; {
		again = false
		for i := range all {
			starts[i+1] = starts[i] + all[i].size()
		}
		for i := range all {
			p := &all[i]
			if (p.kind == jump || p.kind == jumpIf) && !p.long && !isByte(starts[labels[p.to]]-starts[i+1]) {
				p.long, again = true, true
			}
		}
	}
	return starts
}

func isByte(d int) bool { return d == int(int8(d)) }

// encode makes the bytes of a piece that begins at an offset of the code at base.
func (p *piece) encode(base uint64, at int, where func(Label) int) ([]byte, error) {
	if p.kind == plain {
		return p.bytes, nil
	}
	end := at + p.size()
	if p.kind == toAddress {
		return p.refer(int64(p.addr - base - uint64(end)))
	}
	d := where(p.to) - end
	switch {
	case p.kind == toLabel:
		return p.refer(int64(d))
	case p.kind == jumpIfRCXZero && !isByte(d):
		return nil, fmt.Errorf("a jrcxz would have to go %d bytes far", d)
	case p.kind == jumpIfRCXZero:
		return []byte{0xe3, byte(d)}, nil
	case p.kind == jump && p.long:
		return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(d)), nil
	case p.kind == jump:
		return []byte{0xeb, byte(d)}, nil
	case p.long:
		return binary.LittleEndian.AppendUint32([]byte{0x0f, 0x80 | byte(p.cond)}, uint32(d)), nil
	}
	return []byte{0x70 | byte(p.cond), byte(d)}, nil
}

// refer fills in a distance relative to the end of the instruction.
func (p *piece) refer(d int64) ([]byte, error) {
	d += int64(p.extra)
	if d != int64(int32(d)) {
		return nil, fmt.Errorf("%#x is not within 2 GB of the code", p.addr)
	}
	b := append([]byte(nil), p.bytes...)
	binary.LittleEndian.PutUint32(b[p.field:], uint32(d))
	return b, nil
}
