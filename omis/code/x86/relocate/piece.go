package relocate

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// Piece moves a piece of code that stands at from to the address to, without
// changing its length. It is entered at its beginning only, goes on behind its end,
// and leaves by nothing else. What nobody comes to may be data, and stays as it is.
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

// piece follows code wherever it may go.
type piece struct {
	code     []byte
	from, to uint64
	moved    []byte
	seen     map[int]bool // offsets of instructions
	ahead    []int        // those of them that were not looked at yet
}

// visit notes an instruction that threads may come to.
func (p *piece) visit(at int) {
	if at < len(p.code) && !p.seen[at] {
		p.seen[at] = true
		p.ahead = append(p.ahead, at)
	}
}

// instruction moves one, and finds those that may come next.
func (p *piece) instruction(at int) error {
	inst, err := Decode(p.code[at:])
	if err != nil {
		return &Error{p.from + uint64(at), "it is not known"}
	}
	_, relative := inst.Args[0].(x86asm.Rel)
	switch inst.Op {
	case x86asm.JMP:
		if !relative {
			return &Error{p.from + uint64(at), "it jumps to where nobody can tell"}
		}
	case x86asm.CALL:
		// A function whose address is in a register is called wherever the code stands, and
		// returns behind the call.
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

// distance reads one, of 1 or 4 bytes.
func (p *piece) distance(at, size int) int {
	if size == 1 {
		return int(int8(p.code[at]))
	}
	return int(int32(binary.LittleEndian.Uint32(p.code[at:])))
}

// correct has an instruction reach what it uses elsewhere from its new place.
func (p *piece) correct(at int, inst x86asm.Inst) error {
	off := at + inst.PCRelOff
	d := int64(p.distance(off, inst.PCRel)) + int64(p.from-p.to)
	if inst.PCRel != 4 || d < math.MinInt32 || d > math.MaxInt32 {
		return &Error{p.from + uint64(at), "what it uses is out of reach of its new place"}
	}
	binary.LittleEndian.PutUint32(p.moved[off:], uint32(d))
	return nil
}
