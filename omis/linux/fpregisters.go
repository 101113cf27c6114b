//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"math"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
)

// The floating point registers: the low doubles of xmm0-15, then the x87 stack.
const (
	fpRegs  = 24
	x87Regs = 16 // the number of st0
)

// ReadFPRegs: see node.Registers.
func (n *Node) ReadFPRegs(p omis.ProcID, tid, first, count int) ([]float64, error) {
	if err := inFile("floating point", first, count, fpRegs); err != nil {
		return nil, err
	}
	r := readFloats{first, make([]float64, count)}
	if err := n.owners.visit(p, tid, r); err != nil {
		return nil, err
	}
	return r.values, nil
}

// WriteFPRegs: see node.Registers. The rest of a vector register stays.
func (n *Node) WriteFPRegs(p omis.ProcID, tid, first int, values []float64) error {
	if err := inFile("floating point", first, len(values), fpRegs); err != nil {
		return err
	}
	return n.owners.visit(p, tid, writeFloats{first, values})
}

type readFloats struct {
	first  int
	values []float64
}

func (e readFloats) at(o *owner, t *thread) error {
	var regs ptrace.FPRegs
	if err := ptrace.GetFPRegs(t.tid, &regs); err != nil {
		return o.regsError(t, err)
	}
	for i := range e.values {
		if n := e.first + i; n < x87Regs {
			e.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(regs.XMM[n][:]))
		} else {
			e.values[i] = fromExtended(regs.ST[n-x87Regs][:])
		}
	}
	return nil
}

type writeFloats struct {
	first  int
	values []float64
}

func (e writeFloats) at(o *owner, t *thread) error {
	var regs ptrace.FPRegs
	if err := ptrace.GetFPRegs(t.tid, &regs); err != nil {
		return o.regsError(t, err)
	}
	for i, v := range e.values {
		if n := e.first + i; n < x87Regs {
			binary.LittleEndian.PutUint64(regs.XMM[n][:], math.Float64bits(v))
		} else {
			toExtended(regs.ST[n-x87Regs][:], v)
		}
	}
	return o.regsError(t, ptrace.SetFPRegs(t.tid, &regs))
}

// The x87 format: 64 bits of mantissa, the first of them explicit, 15 of
// exponent and the sign.
const (
	extendedBias = 16383
	extendedMax  = 0x7fff
	mantissaTop  = 1 << 63
)

func fromExtended(b []byte) float64 {
	mantissa, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:])
	exponent := int(high & extendedMax)
	sign := 1.0
	if high>>15 != 0 {
		sign = -1
	}
	switch {
	case exponent == extendedMax && mantissa<<1 != 0:
		return math.NaN()
	case exponent == extendedMax:
		return math.Inf(int(sign))
	}
	return math.Copysign(math.Ldexp(float64(mantissa), exponent-extendedBias-63), sign)
}

func toExtended(b []byte, v float64) {
	fraction, exponent := math.Frexp(math.Abs(v))
	mantissa, biased := uint64(0), uint16(0)
	switch {
	case math.IsInf(v, 0):
		mantissa, biased = mantissaTop, extendedMax
	case math.IsNaN(v):
		mantissa, biased = mantissaTop|mantissaTop>>1, extendedMax
	case v != 0:
		mantissa, biased = uint64(math.Ldexp(fraction, 64)), uint16(exponent-1+extendedBias)
	}
	if math.Signbit(v) {
		biased |= 1 << 15
	}
	binary.LittleEndian.PutUint64(b, mantissa)
	binary.LittleEndian.PutUint16(b[8:], biased)
}
