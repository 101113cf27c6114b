//go:build linux && amd64

package kernel

import (
	"sync/atomic"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// A spot is what a program of the kernel is told about one address: units of the slab,
// whose number is the lower half of the uprobe's cookie. The upper half is the serial
// number of its link.
const (
	// spotLink is the serial number of the link whose hits count, 0: none. Above it is
	// that of the link which it takes over from: see once.
	spotLink    = 0
	spotAddr    = 8
	spotGone    = 16 // the unit that says whether the process executes another program
	spotAsked   = 24 // the address that was asked for, 0: the same
	spotSteps   = 32 // of each: the store's unit, above it the mark of a note, and a value
	unitsOfHead = spotSteps / unitSize
)

func spotStep(i int) int16 { return int16(spotSteps + unitSize*i) }

// spotThread is where a thread is named: its number and when it began.
func spotThread(steps, i int) int16 { return spotStep(steps + i) }

func unitsOfSpot(steps, threads int) int { return unitsOfHead + steps + threads }

// writeSpot fills in a spot.
func (s *slab) writeSpot(u unit, t *target, where *site, steps program.Program, named []thread) {
	at := func(offset int16) *atomic.Uint64 { return s.word(u, int(offset)/8) }
	at(spotAddr).Store(where.addr)
	at(spotAsked).Store(where.asked)
	at(spotGone).Store(uint64(t.gone))
	for i, op := range steps {
		at(spotStep(i)).Store(cellAndMark(op))
		at(spotStep(i) + 8).Store(valueOf(op))
	}
	for i, th := range named {
		at(spotThread(len(steps), i)).Store(uint64(th.tid))
		at(spotThread(len(steps), i) + 8).Store(th.ticks)
	}
}

// While one link takes over from another, uprobes of both stand at an address, and each
// hit comes to both of them, first to the new one: the kernel puts it in front. What the
// old one finds when its turn comes may have been counted just before. So the new one
// leaves its number in the row, where the old one finds it: then the hit was counted.
// What is in the row otherwise is from another link, whose number comes never again.

// once goes over where the hit was counted already.
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
