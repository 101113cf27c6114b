//go:build linux && amd64

package code

import (
	"cmp"
	"iter"
	"sync/atomic"

	"github.com/cilium/ebpf/asm"
)

// A spot has the parameters of a program at one address. It is a block of the slab. The lower half of the
// uprobe's cookie is the first unit of the spot, the upper half is the serial number of the uprobe's
// link.
const (
	// spotLink is the serial number of the link whose hits count, 0 for none. Its upper half is the serial
	// number of the link that this one replaces: see once.
	spotLink    = 0
	spotAddr    = 8
	spotGone    = 16 // a unit whose first word becomes 1 when the process executes another program
	spotAsked   = 24 // the address that was requested, 0 if it is the same
	spotSteps   = 32 // of each step: unit of the store, with the mark or the source of the step in the upper half; and value
	UnitsOfHead = spotSteps / UnitSize
)

func spotStep(i int) int16 { return int16(spotSteps + UnitSize*i) }

// spotThread is the offset of a thread that the program is limited to: its number and its start.
func spotThread(steps, i int) int16 { return spotStep(steps + i) }

// UnitsOfSpot returns the length of a spot.
func UnitsOfSpot(steps, threads int) int { return UnitsOfHead + steps + threads }

// Spot is what a spot says besides its links.
type Spot struct {
	Addr  uint64 // of the uprobe
	Asked uint64 // the address that was requested
	Gone  Unit   // its first word becomes 1 when the process executes another program
	Steps []Step
	Only  []Thread
}

// WriteSpot writes a spot. Its hits do not count yet.
func (s *Slab) WriteSpot(u Unit, spot *Spot) {
	s.spotWord(u, spotAddr).Store(spot.Addr)
	s.spotWord(u, spotAsked).Store(spot.Asked)
	s.spotWord(u, spotGone).Store(uint64(spot.Gone))
	for at, value := range spot.parameters() {
		s.spotWord(u, at).Store(value)
	}
}

// SpotSays reports whether a spot has these steps, and these threads.
func (s *Slab) SpotSays(u Unit, steps []Step, only []Thread) bool {
	for at, value := range (&Spot{Steps: steps, Only: only}).parameters() {
		if s.spotWord(u, at).Load() != value {
			return false
		}
	}
	return true
}

// parameters yields the words of the steps and threads with their offsets.
func (spot *Spot) parameters() iter.Seq2[int16, uint64] {
	return func(yield func(int16, uint64) bool) {
		for i, step := range spot.Steps {
			if !yield(spotStep(i), cellAndMark(step)) || !yield(spotStep(i)+8, valueOf(step.Op)) {
				return
			}
		}
		for i, th := range spot.Only {
			at := spotThread(len(spot.Steps), i)
			if !yield(at, uint64(th.TID)) || !yield(at+8, th.Ticks) {
				return
			}
		}
	}
}

func (s *Slab) spotWord(u Unit, offset int16) *atomic.Uint64 { return s.Word(u, int(offset)/8) }

// SpotAddrs returns the address of a spot's uprobe and the requested address. Early versions wrote only the
// former.
func (s *Slab) SpotAddrs(u Unit) (addr, asked uint64) {
	addr = s.spotWord(u, spotAddr).Load()
	return addr, cmp.Or(s.spotWord(u, spotAsked).Load(), addr)
}

// SpotIsActive reports whether hits of a spot count.
func (s *Slab) SpotIsActive(u Unit) bool { return s.spotWord(u, spotLink).Load() != 0 }

// SetSpotLinks sets the link whose hits count, 0 for none. former is the link that it replaces, whose
// uprobes may still be set, or 0.
func (s *Slab) SetSpotLinks(u Unit, serial, former uint32) {
	s.spotWord(u, spotLink).Store(uint64(former)<<32 | uint64(serial))
}

// While one link replaces another, an address has uprobes of both, and each hit runs the program twice,
// first for the new link: the kernel calls uprobes at one address in the reverse order of their setting.
// The new link may not have had its uprobe yet when a hit began, so the old one still has to count some
// hits. The run for the new link writes its serial number to the row. If the run for the old link finds
// this number, the hit was counted, and it clears the number. Any other number is of an earlier link,
// because serial numbers are not used again.

// once jumps to over if the hit has been counted already.
func (a *assembler) once(name, over string) asm.Instructions {
	if a.fixed != nil {
		return nil
	}
	inNew, count := name+"innew", name+"count"
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackHanding, asm.Word),
		asm.JEq.Imm(asm.R1, 0, count),
		asm.LoadMem(asm.R1, asm.RFP, stackOld, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, inNew),
		asm.LoadMem(asm.R2, rowAt, rowMark, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, count),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(rowAt, rowMark, asm.R1, asm.DWord),
		asm.Ja.Label(over),
		asm.LoadMem(asm.R1, asm.RFP, stackNew, asm.DWord).WithSymbol(inNew),
		asm.StoreMem(rowAt, rowMark, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(count),
	}
}
