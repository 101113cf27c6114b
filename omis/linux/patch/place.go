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

// place is a window, its points, and the block that contains its stub. A place never changes: other
// points need another place in another block.
type place struct {
	detour.Window
	points    []*Point // ordered by sortPoints
	block     block
	stub      uint64 // target of the jump
	exclusive string // see node.Patched
	copies    []int  // offsets of the instructions' copies in the stub
	codes     []span // offsets of the points' code in the stub
	gone      bool   // the program's code there was replaced or unmapped
}

// span is a range of offsets.
type span struct{ begin, end int }

// Point is the code of one patch at its place.
type Point struct {
	site      *Site
	patch     node.Patch
	at        uint64 // address of the instruction before which the code runs
	entry     bool
	ends      bool   // the code runs before a return
	pushed    int32  // how much lower the stack pointer is at at than at patch.Addr
	late      bool   // the code runs after instructions that may fault
	change    uint64 // address of the switch in the process
	adopted   []byte // the code if an earlier monitor made it
	adoptedAt uint64 // address of that code
}

var _ node.Patched = (*Point)(nil)

// Addr implements node.Patched.
func (p *Point) Addr() uint64 { return p.patch.Addr }

// Switch implements node.Patched.
func (p *Point) Switch() uint64 { return p.change }

func (p *place) jump() [detour.JumpSize]byte { return detour.Jump(p.Addr, p.stub) }

// encode returns the stub for an address: for each instruction the code of its points and a copy of
// the instruction. The code of an earlier monitor's point is relocated; the code of other points is
// generated for the address.
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
	if p.adopted != nil {
		code, err := relocate.Piece(p.adopted, p.adoptedAt, at)
		if err != nil {
			err = fmt.Errorf("the code of an earlier monitor is there: %w", err)
		}
		return code, err
	}
	return p.patch.Make(node.Spot{Addr: p.patch.Addr, Code: at, Switch: p.change, Entry: p.entry, Return: p.ends, Pushed: p.pushed})
}

// begin returns the offset of the i-th instruction in the window.
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

// inPlace returns the address in the program that corresponds to pc in the stub. exact reports that
// a thread at pc has the same state as it would have at that address.
func (p *place) inPlace(pc uint64) (at uint64, exact bool) {
	offset := int(pc - p.stub)
	i, exact := slices.BinarySearch(p.copies, offset)
	if i == len(p.Ends) {
		return p.Addr + uint64(p.Ends[i-1]), false
	}
	return p.Start(i), exact || slices.ContainsFunc(p.codes, func(s span) bool { return s.begin == offset })
}

// moved returns the address in the stub for a thread at pc inside the window; ok is false if no
// instruction but the first begins there.
func (p *place) moved(pc uint64) (to uint64, ok bool) {
	for i := 1; i < len(p.Ends); i++ {
		if p.Start(i) == pc {
			return p.stub + uint64(p.copies[i]), true
		}
	}
	return 0, false
}

// describe encodes the part of a block before the stub.
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

// stubOffset returns the offset of the stub in its block.
func (p *place) stubOffset() int {
	return align(blockHead + instSize*len(p.Ends) + pointSize*len(p.points))
}

// align rounds up to the alignment of blocks and stubs.
func align(n int) int { return (n + blockAlign - 1) &^ (blockAlign - 1) }
