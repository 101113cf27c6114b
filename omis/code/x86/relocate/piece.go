package relocate

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// Piece moves a piece of code from the address from to the address to without changing
// its length. Threads enter the piece only at its beginning, and leave it only at its
// end. Bytes that threads cannot reach may be data, and are not changed.
func Piece(code []byte, from, to uint64) ([]byte, error) {
	p := piece{code: code, from: from, to: to, moved: slices.Clone(code), seen: make(map[int]bool)}
	p.visit(0)
	for len(p.ahead) > 0 {
		at := p.ahead[len(p.ahead)-1]
		p.ahead = p.ahead[:len(p.ahead)-1]
		if err := p.instruction(at); err != nil {
			return nil, err
		}
	}
	return p.moved, nil
}

// piece follows all paths through the code.
type piece struct {
	code     []byte
	from, to uint64
	moved    []byte
	seen     map[int]bool // offsets of instructions
	ahead    []int        // those not examined yet
}

// visit records an instruction that threads can reach.
func (p *piece) visit(at int) {
	if at < len(p.code) && !p.seen[at] {
		p.seen[at] = true
		p.ahead = append(p.ahead, at)
	}
}

// instruction moves one instruction, and finds its successors.
func (p *piece) instruction(at int) error {
	inst, err := Decode(p.code[at:])
	if err != nil {
		return &Error{p.from + uint64(at), "it is unknown"}
	}
	_, relative := inst.Args[0].(x86asm.Rel)
	switch inst.Op {
	case x86asm.JMP:
		if !relative {
			return &Error{p.from + uint64(at), "its target is unknown"}
		}
	case x86asm.CALL:
		// A call to an address in a register works from any place, and returns after the
		// call.
		if _, register := inst.Args[0].(x86asm.Reg); !register {
			return &Error{p.from + uint64(at), fmt.Sprintf("%v leaves its piece of code", inst.Op)}
		}
		p.visit(at + inst.Len)
	case x86asm.LCALL, x86asm.LJMP, x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSCALL, x86asm.SYSENTER, x86asm.INT:
		return &Error{p.from + uint64(at), fmt.Sprintf("%v leaves its piece of code", inst.Op)}
	default:
		p.visit(at + inst.Len)
	}
	if inst.PCRel == 0 {
		return nil
	}
	next := at + inst.Len
	target := next + p.distance(at+inst.PCRelOff, inst.PCRel)
	switch within := target >= 0 && target <= len(p.code); {
	case !within && relative:
		return &Error{p.from + uint64(at), fmt.Sprintf("%v leaves its piece of code", inst.Op)}
	case !within:
		return p.correct(at, inst)
	case relative:
		p.visit(target)
	}
	return nil
}

// distance reads a distance of 1 or 4 bytes.
func (p *piece) distance(at, size int) int {
	if size == 1 {
		return int(int8(p.code[at]))
	}
	return int(int32(binary.LittleEndian.Uint32(p.code[at:])))
}

// correct changes the distance of an instruction so that it reaches its operand from its
// new place.
func (p *piece) correct(at int, inst x86asm.Inst) error {
	off := at + inst.PCRelOff
	d := int64(p.distance(off, inst.PCRel)) + int64(p.from-p.to)
	if inst.PCRel != 4 || d < math.MinInt32 || d > math.MaxInt32 {
		return &Error{p.from + uint64(at), "its operand is out of reach of its new place"}
	}
	binary.LittleEndian.PutUint32(p.moved[off:], uint32(d))
	return nil
}
