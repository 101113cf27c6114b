package x86

import (
	"encoding/binary"
	"fmt"
)

// Label is a place in a code that can be jumped to.
type Label int

// Code is a sequence of instructions that is being made. Its bytes are known once it is
// known where they stand.
//
// It has parts, which are made in any order and stand in that of their numbers.
type Code struct {
	parts  [mostParts]part
	part   int // where the next instructions stand
	labels []place
}

const mostParts = 4

// part is a piece of code, but for what depends on where things stand.
type part struct {
	bytes []byte
	gaps  []gap
}

// gap is where a distance is to be filled in: from the end of the instruction to a label
// or an address.
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
	toNear            // a label that is no further than a byte says
)

// place is an offset in a part.
type place struct{ part, offset int }

// Part has the next instructions stand in a part.
func (c *Code) Part(n int) { c.part = n }

// NewLabel makes a label that stands nowhere yet.
func (c *Code) NewLabel() Label {
	c.labels = append(c.labels, place{})
	return Label(len(c.labels) - 1)
}

// Here puts a label before what comes next.
func (c *Code) Here(l Label) { c.labels[l] = place{c.part, len(c.parts[c.part].bytes)} }

func (c *Code) emit(b ...byte) {
	p := &c.parts[c.part]
	p.bytes = append(p.bytes, b...)
}

func (c *Code) emit32(v uint32) {
	p := &c.parts[c.part]
	p.bytes = binary.LittleEndian.AppendUint32(p.bytes, v)
}

func (c *Code) emit64(v uint64) {
	p := &c.parts[c.part]
	p.bytes = binary.LittleEndian.AppendUint64(p.bytes, v)
}

// leave leaves four bytes to a distance; more bytes of the instruction follow.
func (c *Code) leave(g gap, more int) {
	p := &c.parts[c.part]
	g.at = len(p.bytes)
	g.end = g.at + 4 + more
	p.gaps = append(p.gaps, g)
	c.emit32(0)
}

// Jump goes to a label.
func (c *Code) Jump(to Label) {
	c.emit(0xe9)
	c.leave(gap{label: to}, 0)
}

// JumpIf goes to a label on a condition.
func (c *Code) JumpIf(cond Cond, to Label) {
	c.emit(0x0f, 0x80|byte(cond))
	c.leave(gap{label: to}, 0)
}

// JumpIfRCXZero goes to a label where RCX is zero, and asks no flags. The label must be
// within 127 bytes.
func (c *Code) JumpIfRCXZero(to Label) {
	c.emit(0xe3)
	p := &c.parts[c.part]
	at := len(p.bytes)
	p.gaps = append(p.gaps, gap{at: at, end: at + 1, kind: toNear, label: to})
	c.emit(0)
}

// Data puts eight bytes into the code.
func (c *Code) Data(v uint64) { c.emit64(v) }

// Bytes encodes the code for an address. How many they are does not depend on it.
func (c *Code) Bytes(at uint64) ([]byte, error) {
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

// fill fills a distance in.
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
