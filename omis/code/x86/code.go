package x86

import (
	"encoding/binary"
	"fmt"
)

// Label is a position in a Code, for jumps.
type Label int

// Code is a sequence of instructions under construction. It has a method for each instruction
// that generated code consists of.
type Code struct{ encoder }

// encoder collects the bytes of instructions. They depend on the address of the code.
//
// The code consists of parts, which may be made in any order; Bytes joins them in the order
// of their numbers.
type encoder struct {
	parts  [mostParts]part
	part   int // current part
	labels []place
}

const mostParts = 4

// part is a piece of code with gaps for what depends on its position.
type part struct {
	bytes []byte
	gaps  []gap
}

// gap is a missing distance from the end of its instruction to a label or an address.
type gap struct {
	at, end int // offsets in the part
	kind    gapKind
	label   Label
	addr    uint64
	extra   int32
}

type gapKind uint8

const (
	toLabel   gapKind = iota
	toAddress         // outside the code
	toNear            // a label within the range of a signed byte
)

// place is an offset in a part.
type place struct{ part, offset int }

// Part selects the part to which the next instructions are appended.
func (c *encoder) Part(n int) { c.part = n }

// NewLabel returns a label that Here must place.
func (c *encoder) NewLabel() Label {
	c.labels = append(c.labels, place{})
	return Label(len(c.labels) - 1)
}

// Here places a label before the next instruction.
func (c *encoder) Here(l Label) { c.labels[l] = place{c.part, len(c.parts[c.part].bytes)} }

func (c *encoder) emit(b ...byte) {
	p := &c.parts[c.part]
	p.bytes = append(p.bytes, b...)
}

func (c *encoder) emit32(v uint32) {
	p := &c.parts[c.part]
	p.bytes = binary.LittleEndian.AppendUint32(p.bytes, v)
}

func (c *encoder) emit64(v uint64) {
	p := &c.parts[c.part]
	p.bytes = binary.LittleEndian.AppendUint64(p.bytes, v)
}

// leave reserves four bytes for a distance; more is the number of bytes of the
// instruction that follow them.
func (c *encoder) leave(g gap, more int) {
	p := &c.parts[c.part]
	g.at = len(p.bytes)
	g.end = g.at + 4 + more
	p.gaps = append(p.gaps, g)
	c.emit32(0)
}

// Jump jumps to a label.
func (c *Code) Jump(to Label) {
	c.emit(0xe9)
	c.leave(gap{label: to}, 0)
}

// JumpIf jumps to a label on a condition.
func (c *Code) JumpIf(cond Cond, to Label) {
	c.emit(0x0f, 0x80|byte(cond))
	c.leave(gap{label: to}, 0)
}

// JumpIfRCXZero jumps to a label if RCX is zero, without regard to the flags. The label
// must be within 127 bytes.
func (c *Code) JumpIfRCXZero(to Label) {
	c.emit(0xe3)
	p := &c.parts[c.part]
	at := len(p.bytes)
	p.gaps = append(p.gaps, gap{at: at, end: at + 1, kind: toNear, label: to})
	c.emit(0)
}

// Data puts eight bytes into the code.
func (c *Code) Data(v uint64) { c.emit64(v) }

// Bytes encodes the code for an address, which does not affect its length.
func (c *encoder) Bytes(at uint64) ([]byte, error) {
	var begins [mostParts + 1]int
	for i := range c.parts {
		begins[i+1] = begins[i] + len(c.parts[i].bytes)
	}
	out := make([]byte, 0, begins[mostParts])
	for i := range c.parts {
		out = append(out, c.parts[i].bytes...)
	}
	for i := range c.parts {
		for _, g := range c.parts[i].gaps {
			target := int64(g.addr - at)
			if g.kind != toAddress {
				l := c.labels[g.label]
				target = int64(begins[l.part] + l.offset)
			}
			if err := fill(out[begins[i]+g.at:], g, target-int64(begins[i]+g.end)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// fill writes a distance into its gap.
func fill(b []byte, g gap, d int64) error {
	d += int64(g.extra)
	switch {
	case g.kind == toNear && d != int64(int8(d)):
		return fmt.Errorf("a jrcxz would have to go %d bytes far", d)
	case g.kind == toNear:
		b[0] = byte(d)
	case d != int64(int32(d)):
		return fmt.Errorf("%#x is not within 2 GB of the code", g.addr)
	default:
		binary.LittleEndian.PutUint32(b, uint32(d))
	}
	return nil
}
