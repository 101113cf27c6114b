//go:build linux && amd64

package inline

import (
	"math/bits"

	"mirador/omis/code/x86"
	"mirador/omis/program"
)

// The records of a thread in a trace are called notes here. They are in a ring of their own, which consists
// of whole rooms in consecutive groups. The number of the next note is counted like ones; the first note
// has number 0.
//
// A thread first clears the number in the place of a note, then writes the note, and then its number plus
// 1. So if a reader finds the same number before and after it reads a note, the note is complete. A signal
// handler may take numbers in between. So a note without its number may still be written, or never, if the
// handler does not return. A handler that fills a whole ring spoils only the note that it has interrupted.
const (
	noteNumber = 0
	noteTime   = 8 // in ticks or nanoseconds: see timing.go
	noteMark   = 16
	noteValue  = 24
	noteShift  = 5

	notesShift  = roomShift - noteShift
	notesOfRoom = 1 << notesShift
)

// ringSizes is the number of sizes of rings. Each is twice the size before.
const ringSizes = 6

// ringFor returns the kind of ring that has room for so many notes.
func ringFor(room int64) cellKind {
	rooms := max((room+notesOfRoom-1)/notesOfRoom, 1)
	return cellRing + min(cellKind(bits.Len64(uint64(rooms-1))), ringSizes-1)
}

// groups returns the number of groups that a cell of this kind takes part of.
func (k cellKind) groups() int {
	if k >= cellRing && k < cellRest {
		return 1 << (k - cellRing)
	}
	return 1
}

// number is the register with the number of a note.
const number = x86.RDI

// trace makes the code that appends a note.
func (m *compiler) trace(s *step) {
	c := m.c
	over := c.NewLabel()
	if s.load.From == program.FromStep {
		c.DoImm(x86.Cmp, result, noResult)
		c.JumpIf(x86.IfEqual, over)
	}
	m.readTime(number)
	c.MovImm(number, 1)
	if s.isNear() {
		c.FetchAdd(x86.At(slot, int32(s.row)), number)
	} else {
		c.MovImm(x86.RDX, s.row)
		c.FetchAdd(x86.Sum(slot, x86.RDX, 0), number)
	}
	m.findNote(s)
	c.StoreImm(x86.At(slot, noteNumber), 0)
	c.Store(x86.At(slot, noteTime), x86.RAX)
	c.StoreImm(x86.At(slot, noteMark), s.mark)
	if s.isLarge() {
		m.bring(s)
		c.Store(x86.At(slot, noteValue), x86.RDX)
	} else {
		c.StoreImm(x86.At(slot, noteValue), int32(s.value))
	}
	c.DoImm(x86.Add, number, 1)
	c.Store(x86.At(slot, noteNumber), number)
	c.Here(over)
}

// findNote puts the address of the note into slot.
func (m *compiler) findNote(s *step) {
	c := m.c
	c.Mov(x86.RDX, number)
	c.DoImm32(x86.And, x86.RDX, notesOfRoom-1)
	c.Shl(x86.RDX, noteShift)
	c.Do(x86.Add, slot, x86.RDX)
	if s.rooms > 1 {
		c.Mov(x86.RDX, number)
		c.Shr(x86.RDX, notesShift)
		c.DoImm32(x86.And, x86.RDX, int32(s.rooms-1))
		c.Shl(x86.RDX, roomShift+uint8(bits.TrailingZeros(uint(m.slots))))
		c.Do(x86.Add, slot, x86.RDX)
	}
	c.MovImm(x86.RDX, s.ring)
	c.Do(x86.Add, slot, x86.RDX)
}

// noteAt returns the offset of the note with a number.
func (m *memory) noteAt(slot int, ring cell, n uint64) int {
	room := int(n>>notesShift) & (ring.kind.groups() - 1)
	return m.slotAt(slot) + (ring.group+room)*m.slots<<roomShift + int(n%notesOfRoom)<<noteShift
}

// note reads the note with a number, with its time in ticks. gone reports that a later note has overwritten
// it.
func (m *memory) note(slot int, ring cell, n uint64) (r program.Record, whole, gone bool) {
	at := m.noteAt(slot, ring, n)
	if !m.inUse(at) {
		return r, false, false
	}
	before := m.word(at + noteNumber).Load()
	r.Time = int64(m.word(at + noteTime).Load())
	r.Mark, r.Value = int32(m.word(at+noteMark).Load()), int64(m.word(at+noteValue).Load())
	after := m.word(at + noteNumber).Load()
	return r, before == n+1 && after == n+1, after > n+1
}

// wipeRing clears the notes of a slot.
func (m *memory) wipeRing(slot int, ring cell) {
	for room := range ring.kind.groups() {
		at := m.slotAt(slot) + (ring.group+room)*m.slots<<roomShift
		if m.forget((ring.group+room)*m.slots+slot) != nil {
			clear(m.bytes[at:][:roomSize])
		}
	}
}
