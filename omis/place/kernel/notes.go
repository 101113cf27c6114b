//go:build linux && amd64

package kernel

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// The records of a thread in a trace lie in its row, behind the rest, as a ring: they are
// called notes. Which number the next one gets stands in the row, as the sum does
// elsewhere; the first has the number 0.
//
// A row is changed by one program at a time, and a program comes to its end. So a note is
// written first, and counted then. Last of all it gets its number, plus one, and first of
// all it loses the one it had: what a reader finds between two looks at the number is whole.
const (
	rowNotes = 64

	noteNumber = 0
	noteTime   = 8 // of the kernel's monotonic clock
	noteMark   = 16
	noteValue  = 24
	noteShift  = 5
)

const (
	// ringSizes is how many sizes of rings there are, each twice the one before.
	ringSizes  = 10
	leastNotes = 128

	// chunkOfNotes is about how much memory a chunk of rows with notes takes, as a power of
	// two, and spareNotes how much is ready for new threads.
	chunkOfNotes = 22
	spareNotes   = 1 << 24
	leastSpare   = 16
)

// formWithNotes is what rows with notes look like.
func formWithNotes(size program.StoreKind) form {
	notes := leastNotes << size
	ring := notes << noteShift
	return form{
		kind: rowsWithNotes + size, size: rowNotes + ring, begun: 56, notes: notes,
		chunk: max(chunkOfNotes-bits.Len(uint(ring-1)), 0), spare: max(spareNotes/ring, leastSpare),
	}
}

// ringFor is the size of a ring that has room for so many notes.
func ringFor(room int64) program.StoreKind {
	times := uint64(max(room, leastNotes)-1) / leastNotes
	return program.StoreKind(min(bits.Len64(times), ringSizes-1))
}

// takesNotes tells whether some step does.
func (s *shape) takesNotes() bool { return slices.Contains(s.steps, program.OpTrace) }

// scale makes of the number of a row in a chunk where that lies.
func (f *form) scale(number asm.Register) asm.Instruction {
	if bits.OnesCount(uint(f.size)) == 1 {
		return asm.LSh.Imm(number, int32(bits.TrailingZeros(uint(f.size))))
	}
	return asm.Mul.Imm(number, int32(f.size))
}

// note assembles the code that takes a note in the row of the thread.
func (a *assembler) note(f *form, i int, name string) asm.Instructions {
	code := append(a.markOf(i), asm.Mov.Reg(asm.R4, asm.R1))
	code = append(code, a.valueOf(i, name)...)
	return append(code,
		asm.LoadMem(asm.R2, rowAt, rowSum, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R3, int32(f.notes-1)), asm.LSh.Imm(asm.R3, noteShift),
		asm.Add.Reg(asm.R3, rowAt),
		asm.Mov.Imm(asm.R5, 0),
		asm.StoreMem(asm.R3, rowNotes+noteNumber, asm.R5, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteTime, hitAt, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteMark, asm.R4, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteValue, asm.R1, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R3, rowNotes+noteNumber, asm.R2, asm.DWord),
		asm.StoreMem(rowAt, rowSum, asm.R2, asm.DWord))
}

// markOf puts the mark of a step into R1.
func (a *assembler) markOf(i int) asm.Instructions {
	if a.fixed != nil {
		return asm.Instructions{asm.Mov.Imm(asm.R1, a.fixed[i].Mark)}
	}
	return append(fromSpot(spotStep(i)), asm.RSh.Imm(asm.R1, 32))
}

// cellAndMark is what a spot says of where a step writes, and with which mark.
func cellAndMark(op program.Op) uint64 {
	return uint64(storeIn(op).cell) | uint64(uint32(op.Mark))<<32
}

// note reads the note of a number. It is not whole where a later one is in its place.
func (r row) note(n uint64) (note program.Record, whole bool) {
	at := rowNotes + int(n)&(r.form.notes-1)<<noteShift
	before := r.word(at + noteNumber)
	note.Time = int64(r.word(at + noteTime))
	note.Mark, note.Value = int32(r.word(at+noteMark)), int64(r.word(at+noteValue))
	return note, before == n+1 && r.word(at+noteNumber) == n+1
}
