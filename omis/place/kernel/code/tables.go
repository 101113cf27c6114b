//go:build linux && amd64

package code

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Tables are what the programs of one monitor have in common.
type Tables struct {
	Layout *Layout
	Slab   *Slab
	Pools  *Pools
}

// Unit is the number of a piece of the slab, which has two words. A parameter block of several
// units is known by the number of its first unit. No block has the number 0.
type Unit uint32

const (
	unitShift = 4
	UnitSize  = 1 << unitShift
	// SlabUnits is the number of units. An address where one thing is counted takes three, a store or a
	// process one.
	SlabUnits = 1 << 18
	// MostUnits is the most units that one block may have.
	MostUnits = 32
)

// Slab is memory by which the monitor passes parameters to programs.
type Slab struct {
	Words *ebpf.Map // an array of one element
	Bytes []byte    // the same memory, mapped into the monitor
}

// Word is the i-th word of the block that begins with a unit.
func (s *Slab) Word(u Unit, i int) *atomic.Uint64 { return WordIn(s.Bytes, UnitSize*int(u)+8*i) }

// WordIn is the word at an offset of shared memory.
func WordIn(b []byte, at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[at])) }

// address puts the address of the unit whose number is in one register into another register.
// It jumps to the label if the slab has no such unit.
func (s *Slab) address(to, number asm.Register, label string) asm.Instructions {
	return asm.Instructions{
		asm.JGE.Imm(number, SlabUnits-MostUnits, label),
		asm.LSh.Imm(number, unitShift),
		asm.LoadMapValue(to, s.Words.FD(), 0),
		asm.Add.Reg(to, number),
	}
}

// at puts the address of a unit into a register.
func (s *Slab) at(to asm.Register, u Unit) asm.Instruction {
	return asm.LoadMapValue(to, s.Words.FD(), UnitSize*uint32(u))
}

// Words of a store's unit.
const (
	CellEpoch = 0 // rows of other epochs are out of date
	CellLost  = 1 // number of hits that found no row
)

// Pool has the maps by which programs find and take rows of one kind.
type Pool struct {
	Form   *Form
	Index  *ebpf.Map // Key -> number of the row
	Deep   *ebpf.Map // number of a row -> its open intervals beyond those in the row
	Blank  *ebpf.Map // a new entry of Deep, all zero
	Chunks *ebpf.Map // an array of maps that contain the rows
	Recent *ebpf.Map // numbers of rows that were found last: see recentAt
	Ring   *ebpf.Map // numbers of free rows
}

// Pools are the pools by kind of row; nil for kinds that are not used.
type Pools [RowKinds]*Pool

// MostChunks is the most chunks of rows that a pool can have.
const MostChunks = 1 << 7

// Sizes of entries of a pool's maps.
const (
	DeepSize   = 16 * (maxOpen - near)
	RecentSize = 4 * recentNumbers
)

// Offsets in a ring. The monitor adds numbers at the tail, programs take them at the head.
const (
	RingHead    = 0
	RingTail    = 64 // in another cache line than the head
	RingEntries = 128

	// RingSize is the most numbers that a ring can hold.
	RingSize = 1 << 16
)

// Bodies has the programs of processes for one tracepoint. The root program, which is attached, continues
// with one of them by a tail call.
type Bodies struct {
	Name string
	Map  *ebpf.Map // slot -> program
}

// quickSlots is the number of slots, from the first, for which the root program has a jump with
// a constant slot: the kernel patches these into direct jumps. For any other slot it loads the
// program from the table and jumps indirectly, which a retpoline makes slow.
const quickSlots = 4

// handOver makes a tail call of the program of the slot in R3, if there is one. told is the register with
// the tracepoint's arguments.
func (b *Bodies) handOver(told asm.Register) (code asm.Instructions) {
	jump := func() {
		code = append(code, asm.Mov.Reg(asm.R1, told), asm.LoadMapPtr(asm.R2, b.Map.FD()), asm.FnTailCall.Call())
	}
	for s := range int32(quickSlots) {
		other := fmt.Sprint(b.Name, "slot", s)
		code = append(code, asm.JNE.Imm(asm.R3, 1+s, other), asm.Mov.Imm(asm.R3, 1+s))
		jump()
		code = append(code, asm.Ja.Label(b.Name+"handed"), asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	jump()
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(b.Name+"handed"))
}
