//go:build linux && amd64

package library

import (
	"encoding/binary"

	"mirador/omis/host/prototype"
)

// Offsets of st0 and xmm0 in the FXSAVE area; each register takes 16 bytes.
const (
	areaST0  = 32
	areaXMM0 = 160
	slotSize = 16
)

// Numbers of registers for parameters (System V ABI for x86-64, 3.2.3).
const (
	integerRegisters = 6
	vectorRegisters  = 8
)

// firstOnStack is the offset from the stack pointer, above the return address, at which
// the parameters begin that are not in registers.
const firstOnStack = 8

// walk iterates over the parameters of a call.
type walk struct {
	ints    [integerRegisters]uint64
	r       *Registers
	mem     prototype.Memory
	integer int // registers used so far
	vector  int
	address uint64 // of the next parameter on the stack
}

func arguments(f *prototype.Func, r *Registers, mem prototype.Memory) []prototype.Arg {
	w := walk{
		ints: [...]uint64{r.Rdi, r.Rsi, r.Rdx, r.Rcx, r.R8, r.R9},
		r:    r, mem: mem, address: r.Rsp + firstOnStack,
	}
	if inMemory(&f.Result) {
		w.integer++ // for the address of the result
	}
	args := make([]prototype.Arg, len(f.Params))
	for i := range f.Params {
		args[i] = w.next(&f.Params[i].Type)
	}
	return args
}

// inMemory reports whether an aggregate is passed in memory. An empty one is not passed
// at all.
func inMemory(t *prototype.Type) bool {
	return t.Kind == prototype.Aggregate && len(t.Eights) == 0 && t.Size > 1
}

func (w *walk) next(t *prototype.Type) prototype.Arg {
	switch {
	case t.Kind == prototype.Aggregate:
		return w.aggregate(t)
	case t.Kind == prototype.Floating && t.Size > 8:
		return w.longDouble()
	case t.Kind == prototype.Floating && w.vector < vectorRegisters:
		w.vector++
		return prototype.Arg{Bits: w.r.xmm(w.vector - 1)}
	case t.Kind != prototype.Floating && w.integer < integerRegisters:
		w.integer++
		return prototype.Arg{Bits: w.ints[w.integer-1]}
	}
	return prototype.Arg{Bits: binary.LittleEndian.Uint64(w.onStack(8))}
}

func (w *walk) aggregate(t *prototype.Type) prototype.Arg {
	var ints, vectors int
	for _, c := range t.Eights {
		if c == prototype.ClassVector {
			vectors++
		} else {
			ints++
		}
	}
	switch {
	case len(t.Eights) == 0 && !inMemory(t):
		return prototype.Arg{}
	case inMemory(t) || w.integer+ints > integerRegisters || w.vector+vectors > vectorRegisters:
		return prototype.Arg{Bytes: w.onStack(t.Size)}
	}
	var b []byte
	for _, c := range t.Eights {
		if c == prototype.ClassVector {
			b = binary.LittleEndian.AppendUint64(b, w.r.xmm(w.vector))
			w.vector++
		} else {
			b = binary.LittleEndian.AppendUint64(b, w.ints[w.integer])
			w.integer++
		}
	}
	return prototype.Arg{Bytes: b[:min(len(b), t.Size)]}
}

func (w *walk) longDouble() prototype.Arg {
	w.address = (w.address + 15) &^ 15
	return prototype.Arg{Bytes: w.onStack(16)}
}

// onStack reads the next parameter from the stack, zeros if the memory cannot be read.
func (w *walk) onStack(size int) []byte {
	b := make([]byte, min(size, prototype.MostBytes))
	w.mem(b, w.address)
	w.address += (uint64(size) + 7) &^ 7
	return b
}

func (r *Registers) xmm(n int) uint64 {
	at := areaXMM0 + n*slotSize
	if len(r.FP) < at+8 {
		return 0
	}
	return binary.LittleEndian.Uint64(r.FP[at:])
}

func result(t *prototype.Type, r *Registers, mem prototype.Memory) prototype.Arg {
	switch {
	case t.Kind == prototype.Floating && t.Size > 8:
		b := make([]byte, slotSize)
		if len(r.FP) >= areaST0+slotSize {
			copy(b, r.FP[areaST0:])
		}
		return prototype.Arg{Bytes: b}
	case t.Kind == prototype.Floating:
		return prototype.Arg{Bits: r.xmm(0)}
	case inMemory(t): // the function returns its address
		b := make([]byte, min(t.Size, prototype.MostBytes))
		n, _ := mem(b, r.Rax)
		return prototype.Arg{Bytes: b[:n]}
	case t.Kind == prototype.Aggregate:
		return eights(t, r)
	}
	return prototype.Arg{Bits: r.Rax}
}

// eights assembles an aggregate that is returned in registers: rax and rdx, xmm0 and
// xmm1, each kind in its own order.
func eights(t *prototype.Type, r *Registers) prototype.Arg {
	ints := []uint64{r.Rax, r.Rdx}
	var b []byte
	vector := 0
	for _, c := range t.Eights {
		if c == prototype.ClassVector {
			b = binary.LittleEndian.AppendUint64(b, r.xmm(vector))
			vector++
		} else {
			b = binary.LittleEndian.AppendUint64(b, ints[0])
			ints = ints[1:]
		}
	}
	return prototype.Arg{Bytes: b[:min(len(b), t.Size)]}
}
