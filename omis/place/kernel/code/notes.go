//go:build linux && amd64

package code

import (
	"math/bits"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// The records of a thread in a trace are called notes here. They are a ring at the end of the thread's row.
// The row also has the number of the next note, at the place of the sum in other rows; the first note has
// number 0.
//
// One program at a time changes a row, and runs to its end. It first invalidates the number of the note it
// overwrites, then writes the note, then its number plus 1, and then counts it. So if a reader finds the
// same number before and after it reads a note, the note is complete.
const (
	rowNotes = 64

	noteNumber = 0
	noteTime   = 8 // by the kernel's monotonic clock
	noteMark   = 16
	noteValue  = 24
	noteShift  = 5
)

const (
	// ringSizes is the number of sizes of rings. Each is twice the size before.
	ringSizes  = 10
	leastNotes = 128

	// chunkOfNotes is about the size of a chunk of rows with notes, as a power of two. spareNotes is the
	// memory that is ready for new threads.
	chunkOfNotes = 22
	spareNotes   = 1 << 24
	leastSpare   = 16
)

// formWithNotes returns the form of rows with notes.
func formWithNotes(size program.StoreKind) Form {
	notes := leastNotes << size
	ring := notes << noteShift
	return Form{
		Kind: RowsWithNotes + size, Size: rowNotes + ring, Begun: 56, Notes: notes,
		Chunk: max(chunkOfNotes-bits.Len(uint(ring-1)), 0), Spare: max(spareNotes/ring, leastSpare),
	}
}

// RingFor returns the size of a ring that has room for so many notes.
func RingFor(room int64) program.StoreKind {
	times := uint64(max(room, leastNotes)-1) / leastNotes
	return program.StoreKind(min(bits.Len64(times), ringSizes-1))
}

// scale multiplies the number of a row in its chunk by the size of rows.
func (f *Form) scale(number asm.Register) asm.Instruction {
	if bits.OnesCount(uint(f.Size)) == 1 {
		return asm.LSh.Imm(number, int32(bits.TrailingZeros(uint(f.Size))))
	}
	return asm.Mul.Imm(number, int32(f.Size))
}

// note assembles the code that appends a note to the row of the thread.
func (a *assembler) note(f *Form, i int, name string) asm.Instructions {
	code := append(a.markOf(i), asm.Mov.Reg(asm.R4, asm.R1))
	code = append(code, a.valueOf(i, name)...)
	return append(code,
		asm.LoadMem(asm.R2, rowAt, RowSum, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R3, int32(f.Notes-1)), asm.LSh.Imm(asm.R3, noteShift),
		asm.Add.Reg(asm.R3, rowAt),
		asm.Mov.Imm(asm.R5, 0),
		asm.StoreMem(asm.R3, rowNotes+noteNumber, asm.R5, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteTime, hitAt, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteMark, asm.R4, asm.DWord),
		asm.StoreMem(asm.R3, rowNotes+noteValue, asm.R1, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R3, rowNotes+noteNumber, asm.R2, asm.DWord),
		asm.StoreMem(rowAt, RowSum, asm.R2, asm.DWord))
}

// markOf puts the mark of a step into R1.
func (a *assembler) markOf(i int) asm.Instructions {
	if a.fixed != nil {
		return asm.Instructions{asm.Mov.Imm(asm.R1, a.fixed[i].Mark)}
	}
	return append(fromSpot(spotStep(i)), asm.RSh.Imm(asm.R1, 32))
}

// cellAndMark is the first word of a step in a spot. The upper half of a step with a clock is its source.
func cellAndMark(s Step) uint64 {
	if s.Times() {
		return uint64(s.Cell) | uint64(s.Source)<<32
	}
	return uint64(s.Cell) | uint64(uint32(s.Mark))<<32
}

// Note reads the note with a number. whole is false if a later note has overwritten it.
func (r Row) Note(n uint64) (note program.Record, whole bool) {
	at := rowNotes + int(n)&(r.Form.Notes-1)<<noteShift
	before := r.Word(at + noteNumber)
	note.Time = int64(r.Word(at + noteTime))
	note.Mark, note.Value = int32(r.Word(at+noteMark)), int64(r.Word(at+noteValue))
	return note, before == n+1 && r.Word(at+noteNumber) == n+1
}
