package safedwarf

import (
	"bytes"
	"encoding/binary"
)

// cursor reads numbers from a section. After the end of its bytes it reads zeros, and bad is
// set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	taken := c.b[:n:n]
	c.b = c.b[n:]
	return taken
}

// fixed reads a number of up to 8 bytes.
func (c *cursor) fixed(n uint64) uint64 {
	var b [8]byte
	copy(b[:], c.take(n))
	return binary.LittleEndian.Uint64(b[:])
}

func (c *cursor) u8() uint64 { return c.fixed(1) }

// offset reads an offset into a section.
func (c *cursor) offset(wide bool) uint64 {
	if wide {
		return c.fixed(8)
	}
	return c.fixed(4)
}

func (c *cursor) uleb() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := c.u8()
		n |= (b & 0x7f) << min(shift, 63)
		if b < 0x80 {
			return n
		}
	}
}

func (c *cursor) sleb() int64 {
	n, shift := int64(0), 0
	for {
		b := c.u8()
		n |= int64(b&0x7f) << min(shift, 63)
		if shift += 7; b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				n |= -1 << shift
			}
			return n
		}
	}
}

// text reads a string that a zero ends.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.b, 0)
	if n < 0 {
		c.b, c.bad = nil, true
		return nil
	}
	text := c.take(uint64(n))
	c.take(1)
	return text
}
