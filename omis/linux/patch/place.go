//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"fmt"
	"slices"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/node"
)

// place is a window with the points in it and the block that its stub is in. A
// place never changes: with other points it is another one, in another block.
type place struct {
	detour.Window
	points    []*Point // by their instructions, at one in the order they came
	block     block
	stub      uint64 // what the jump leads to
	exclusive string // see node.Patched
	copies    []int  // offsets in the stub of what each instruction became
	codes     []span // of the points, offsets in the stub
	gone      bool   // other code stands there by now
}

// span is a range of offsets.
type span struct{ begin, end int }

// Point is code in its place.
type Point struct {
	site   *Site
	patch  node.Patch
	at     uint64 // the instruction it runs before
	entry  bool
	ends   bool   // it runs before a return
	pushed int32  // how far the stack pointer is below where the program has it at patch.Addr
	late   bool   // it runs behind instructions that may fault
	change uint64 // the address of its byte in the process
	left   []byte // what an earlier monitor has made; nil: we make it
	from   uint64 // where that stands
}

var _ node.Patched = (*Point)(nil)

// Addr: see node.Patched.
func (p *Point) Addr() uint64 { return p.patch.Addr }

// Switch: see node.Patched.
func (p *Point) Switch() uint64 { return p.change }

func (p *place) jump() [detour.JumpSize]byte { return detour.Jump(p.Addr, p.stub) }

// encode makes the stub for an address: the code of each point, and then what its
// instruction became. The code is made anew, for the place where it will stand, or
// copied.
func (p *place) encode(at uint64) (stub []byte, err error) {
	p.stub, p.copies, p.codes = at, nil, nil
	next := 0
	for i := range p.Ends {
		for ; next < len(p.points) && p.points[next].at == p.Start(i); next++ {
			begin := len(stub)
			code, err := p.points[next].make(at + uint64(begin))
			if err != nil {
				return nil, err
			}
			stub = append(stub, code...)
			p.codes = append(p.codes, span{begin, len(stub)})
		}
		p.copies = append(p.copies, len(stub))
		c, err := p.CopyOne(i, at+uint64(len(stub)))
		if err != nil {
			return nil, err
		}
		stub = append(stub, c...)
	}
	if next < len(p.points) {
		return nil, fmt.Errorf("the instruction at %#x is not displaced", p.points[next].at)
	}
	return stub, nil
}

func (p *Point) make(at uint64) ([]byte, error) {
	if p.left != nil {
		code, err := relocate.Piece(p.left, p.from, at)
		if err != nil {
			err = fmt.Errorf("the code of an earlier monitor stands there: %w", err)
		}
		return code, err
	}
	return p.patch.Make(node.Spot{Addr: p.patch.Addr, Code: at, Switch: p.change, Entry: p.entry, Return: p.ends, Pushed: p.pushed})
}

// begin is the offset in the window of the i-th instruction.
func (p *place) begin(i int) int {
	if i == 0 {
		return 0
	}
	return p.Ends[i-1]
}

// begins reports whether an instruction of the window begins at an address.
func (p *place) begins(at uint64) bool {
	for i := range p.Ends {
		if p.Start(i) == at {
			return true
		}
	}
	return false
}

// inPlace gives for an address in the stub the one in the program that a thread
// there stands at; exact tells that it is in the state it would have there.
func (p *place) inPlace(pc uint64) (at uint64, exact bool) {
	offset := int(pc - p.stub)
	i, exact := slices.BinarySearch(p.copies, offset)
	if i == len(p.Ends) {
		return p.Addr + uint64(p.Ends[i-1]), false
	}
	return p.Start(i), exact || slices.ContainsFunc(p.codes, func(s span) bool { return s.begin == offset })
}

// moved is where a thread goes on that stands inside the window.
func (p *place) moved(pc uint64) (to uint64, ok bool) {
	for i := 1; i < len(p.Ends); i++ {
		if p.Start(i) == pc {
			return p.stub + uint64(p.copies[i]), true
		}
	}
	return 0, false
}

// describe encodes what stands before the stub in a block.
func (p *place) describe() []byte {
	b := make([]byte, blockHead)
	le := binary.LittleEndian
	le.PutUint64(b[blockState:], p.block.state(holdsPlace))
	le.PutUint64(b[blockAddr:], p.Addr)
	le.PutUint16(b[blockLength:], uint16(len(p.Code)))
	if p.exclusive != "" {
		b[blockNotes] |= noteExclusive
	}
	if slices.ContainsFunc(p.points, func(point *Point) bool { return point.late }) {
		b[blockNotes] |= noteLate
	}
	le.PutUint16(b[blockInsts:], uint16(len(p.Ends)))
	le.PutUint16(b[blockPoints:], uint16(len(p.points)))
	copy(b[blockOriginal:], p.Code[:detour.JumpSize])
	for i := range p.Ends {
		b = le.AppendUint32(b, uint32(p.Ends[i]))
		b = le.AppendUint32(b, uint32(p.copies[i]))
	}
	for i, point := range p.points {
		b = le.AppendUint64(b, point.patch.Addr)
		b = le.AppendUint64(b, point.at)
		b = le.AppendUint64(b, point.change)
		b = le.AppendUint32(b, uint32(p.codes[i].begin))
		b = le.AppendUint32(b, uint32(p.codes[i].end))
	}
	return append(b, make([]byte, p.stubOffset()-len(b))...)
}

// stubOffset is where the stub begins in a block.
func (p *place) stubOffset() int {
	return align(blockHead + instSize*len(p.Ends) + pointSize*len(p.points))
}

// align rounds up to where blocks and stubs may begin.
func align(n int) int { return (n + blockAlign - 1) &^ (blockAlign - 1) }
