package prototype

import (
	"bytes"
	"encoding/binary"
	"math"

	"mirador/omis"
)

// Memory reads the memory of the calling process. It returns the number of bytes read,
// with an error if that is less than all.
type Memory func(buf []byte, addr uint64) (n int, err error)

// Limits of what is read of one parameter.
const (
	MostBytes   = 4096
	MostStrings = 64
)

// Arg is a parameter or result in its register: an integer, pointer or floating point
// number of up to eight bytes in Bits; anything larger in Bytes.
type Arg struct {
	Bits  uint64
	Bytes []byte
}

// Started decodes the parameters of a call that starts, one value each.
func (f *Func) Started(args []Arg, mem Memory) []omis.Value {
	c := call{f, args, 0, In, mem}
	return c.values(nil)
}

// Ended returns the result and decodes the parameters of a call that ends. args are the
// values at its start.
func (f *Func) Ended(args []Arg, result omis.Value, mem Memory) []omis.Value {
	done, _ := result.Int64()
	c := call{f, args, uint64(max(done, 0)), Out, mem}
	return c.values([]omis.Value{result})
}

// call is a call at its start or end.
type call struct {
	*Func
	args   []Arg
	result uint64
	now    Direction
	mem    Memory
}

func (c *call) values(values []omis.Value) []omis.Value {
	for i := range c.Params {
		if i >= len(c.args) {
			break
		}
		values = append(values, c.value(i))
	}
	return values
}

func (c *call) value(i int) omis.Value {
	p, arg := &c.Params[i], c.args[i]
	if p.Type.Kind != Pointer {
		return p.Type.Value(arg)
	}
	// The input of a call is usually still in memory at its end, but its output is not
	// there before.
	if p.Direction&c.now == 0 && (c.now == In || p.Direction == 0) || arg.Bits == 0 {
		return omis.Uint(arg.Bits)
	}
	v, ok := c.pointee(p, arg.Bits)
	if !ok {
		return omis.Uint(arg.Bits)
	}
	return v
}

// pointee reads what a pointer points to; ok is false if there is no memory, or its type
// is unknown.
func (c *call) pointee(p *Param, addr uint64) (v omis.Value, ok bool) {
	elem := p.Type.Elem
	if p.Length.Kind == One {
		switch {
		case elem.Char:
			return c.str(addr)
		case elem.Kind == Pointer && elem.Elem.Char:
			return c.strs(addr)
		}
		return c.one(elem, addr)
	}
	n, ok := c.length(p.Length)
	if !ok {
		return v, false
	}
	if elem.Size <= 1 || elem.Kind == Aggregate {
		b := make([]byte, min(n, MostBytes))
		got, err := c.mem(b, addr)
		return omis.Binary(b[:got]), got > 0 || err == nil
	}
	return c.list(elem, addr, n)
}

func (c *call) one(t *Type, addr uint64) (omis.Value, bool) {
	if t.Size == 0 || t.Size > MostBytes {
		return omis.Value{}, false
	}
	b := make([]byte, max(t.Size, 8))
	if n, _ := c.mem(b[:t.Size], addr); n < t.Size {
		return omis.Value{}, false
	}
	return t.Value(Arg{Bits: binary.LittleEndian.Uint64(b), Bytes: b[:t.Size]}), true
}

func (c *call) list(t *Type, addr, n uint64) (omis.Value, bool) {
	var vs []omis.Value
	for i := range min(n, uint64(MostBytes/t.Size)) {
		v, ok := c.one(t, addr+i*uint64(t.Size))
		if !ok {
			return omis.List(vs...), i > 0
		}
		vs = append(vs, v)
	}
	return omis.List(vs...), true
}

func (c *call) length(l Length) (n uint64, ok bool) {
	n = 1
	switch l.Kind {
	case OfResult:
		n = c.result
	case OfParam, AtParam:
		if l.Param >= len(c.args) {
			return 0, false
		}
		v := c.Params[l.Param].Type.Value(c.args[l.Param])
		if t := c.Params[l.Param].Type; l.Kind == AtParam && t.Kind == Pointer {
			if v, ok = c.one(t.Elem, c.args[l.Param].Bits); !ok {
				return 0, false
			}
		}
		if v.Neg {
			return 0, true
		}
		n = v.N
	}
	if n > math.MaxInt32 {
		n = math.MaxInt32 // far more than is read
	}
	return n * uint64(l.Scale), true
}

// str reads a string that ends with a zero. It reads page by page, because the memory
// after the string may not exist.
func (c *call) str(addr uint64) (omis.Value, bool) {
	const page = 4096
	var text []byte
	for len(text) < MostBytes {
		at := addr + uint64(len(text))
		b := make([]byte, min(page-at%page, uint64(MostBytes-len(text)), max(64, uint64(len(text)))))
		n, _ := c.mem(b, at)
		if i := bytes.IndexByte(b[:n], 0); i >= 0 {
			return omis.String(string(append(text, b[:i]...))), true
		}
		text = append(text, b[:n]...)
		if n < len(b) {
			return omis.String(string(text)), len(text) > 0
		}
	}
	return omis.String(string(text)), true
}

func (c *call) strs(addr uint64) (omis.Value, bool) {
	vs := []omis.Value{}
	for ; len(vs) < MostStrings; addr += 8 {
		var b [8]byte
		if n, _ := c.mem(b[:], addr); n < len(b) {
			break
		}
		at := binary.LittleEndian.Uint64(b[:])
		if at == 0 {
			return omis.List(vs...), true
		}
		v, ok := c.str(at)
		if !ok {
			v = omis.Uint(at)
		}
		vs = append(vs, v)
	}
	return omis.List(vs...), len(vs) > 0
}

// Value decodes an object of the type; a pointer becomes an address, an aggregate binary.
// Void becomes the integer 0, so that the following values keep their positions.
func (t *Type) Value(a Arg) omis.Value {
	switch t.Kind {
	case Void:
		return omis.Int(0)
	case Integer:
		return t.integer(a.Bits)
	case Floating:
		return t.floating(a)
	case Aggregate:
		return omis.Binary(a.Bytes)
	}
	return omis.Uint(a.Bits)
}

func (t *Type) integer(bits uint64) omis.Value {
	if t.Size > 8 || t.Size < 1 {
		return omis.Uint(bits)
	}
	unused := 64 - 8*t.Size
	if t.Signed {
		return omis.Int(int64(bits<<unused) >> unused)
	}
	return omis.Uint(bits << unused >> unused)
}

func (t *Type) floating(a Arg) omis.Value {
	switch {
	case t.Size == 4:
		return omis.Float(float64(math.Float32frombits(uint32(a.Bits))))
	case t.Size > 8:
		return omis.Float(extended(a.Bytes))
	}
	return omis.Float(math.Float64frombits(a.Bits))
}

// extended converts an 80-bit number of the x87 to the nearest double.
func extended(b []byte) float64 {
	const bias, mantissa = 16383, 63
	if len(b) < 10 {
		return math.NaN()
	}
	m := binary.LittleEndian.Uint64(b)
	e := int(binary.LittleEndian.Uint16(b[8:]))
	sign := 1.0
	if e&0x8000 != 0 {
		sign = -1
	}
	switch e &= 0x7fff; {
	case e == 0x7fff && m<<1 == 0:
		return math.Inf(int(sign))
	case e == 0x7fff:
		return math.NaN()
	default:
		return sign * math.Ldexp(float64(m), e-bias-mantissa)
	}
}
