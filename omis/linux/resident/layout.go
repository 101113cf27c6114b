//go:build linux && amd64

package resident

import (
	"encoding/binary"
	"errors"
	"io"
)

// An arena is a mapping in the target near the code with breakpoints. The first one,
// home, begins with the handler and the table; the others contain only copies.
// handler_amd64.s uses the same offsets.
const (
	ArenaSize = 0x20000

	offsetMagic   = 0x600
	offsetArenas  = 0x610 // pairs of begin and end, zero if unused
	MaxArenas     = 16
	offsetOld     = 0x720 // the program's own struct kernel_sigaction
	offsetCount   = 0x780
	offsetStep    = 0x788 // not 0 while the monitor requests single steps
	offsetOpened  = 0x790 // a set of signals
	offsetEntries = 0x1000
	entrySize     = 32
	MaxEntries    = 0x700
	homeSlots     = 0x10000
	SlotSize      = 64
	SigactionSize = 32
)

// magic identifies an arena of any monitor of this version.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'a', 'r', 'e', 'n', 'a', ' ', '4', 0}

// Home is the address of the first arena of a target.
type Home uint64

func (h Home) Handler() uint64  { return uint64(h) }
func (h Home) Restorer() uint64 { return uint64(h) + offsetRestorer }

// Stub is the address of a permanent StubCode.
func (h Home) Stub() uint64 { return uint64(h) + offsetStub }

// Old is the address of the program's own action for SIGTRAP.
func (h Home) Old() uint64 { return uint64(h) + offsetOld }

// Count is the address of the number of valid table entries. The monitor raises the
// number after it has written an entry, and never lowers it, because a thread may still
// be on its way to the table.
func (h Home) Count() uint64 { return uint64(h) + offsetCount }

// Stepping is the address of the word that is not 0 while the monitor requests single
// steps.
func (h Home) Stepping() uint64 { return uint64(h) + offsetStep }

// Opened is the address of a set of signals: the monitor removed SIGTRAP from the masks of their
// handlers.
func (h Home) Opened() uint64 { return uint64(h) + offsetOpened }

// Arena is the address of the bounds of the i-th arena.
func (h Home) Arena(i int) uint64 { return uint64(h) + offsetArenas + uint64(i)*16 }

// Entry is the address of the i-th table entry.
func (h Home) Entry(i int) uint64 { return uint64(h) + offsetEntries + uint64(i)*entrySize }

// Slots returns the range of addresses for copies in an arena.
func Slots(arena uint64, home bool) (first, end uint64) {
	if home {
		return arena + homeSlots, arena + ArenaSize
	}
	return arena, arena + ArenaSize
}

// Mark is the address of the byte of the i-th table entry that is not 0 while its INT3 is
// in the code: see Entry.Standing.
func (h Home) Mark(i int) uint64 { return h.Entry(i) + offsetMark }

const (
	offsetRestorer = 0x500
	offsetStub     = 0x540
	offsetSweep    = 0x560
)

// Image returns the initial content of home.
func (h Home) Image() []byte {
	image := make([]byte, offsetEntries)
	copy(image, handlerCode())
	copy(image[offsetRestorer:], restorerCode())
	copy(image[offsetStub:], StubCode)
	copy(image[offsetSweep:], append(sweepCode(), StubCode[StubReturn:]...))
	copy(image[offsetCalls:], ReturnCode)
	copy(image[offsetMagic:], magic[:])
	copy(image[offsetArenas:], Bounds(uint64(h)))
	return image
}

// Bounds encodes the addresses at which an arena begins and ends.
func Bounds(arena uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, arena)
	return binary.LittleEndian.AppendUint64(b, arena+ArenaSize)
}

// Entry maps a breakpoint to its copy.
type Entry struct {
	Addr, Copy uint64
	Original   byte   // the byte that the INT3 displaced
	Length     uint64 // of the displaced instruction
	// Standing reports that the monitor's INT3 is in the code, or is about to be.
	// Otherwise an INT3 at this address is another tool's, such as a uprobe's. So the
	// monitor and the warden clear this mark when they remove an INT3.
	Standing bool
}

// standing is a bit of an entry's last word, in the byte at offsetMark, above the
// displaced byte.
const (
	standing   = 1 << 8
	offsetMark = 25
)

// Encode returns the entry's bytes in the table.
func (e Entry) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, e.Addr)
	b = binary.LittleEndian.AppendUint64(b, e.Copy)
	b = binary.LittleEndian.AppendUint64(b, e.Length)
	last := uint64(e.Original)
	if e.Standing {
		last |= standing
	}
	return binary.LittleEndian.AppendUint64(b, last)
}

// State is what an earlier monitor left in home.
type State struct {
	Entries []Entry
	Arenas  []uint64
	Old     Sigaction
	Opened  uint64
}

// IsHere reports whether memory contains a home at this address, judging by the magic
// bytes.
func (h Home) IsHere(memory io.ReaderAt) bool {
	var found [len(magic)]byte
	_, err := memory.ReadAt(found[:], int64(h)+offsetMagic)
	return err == nil && found == magic
}

// ErrForeign is the error for memory that is not a home.
var ErrForeign = errors.New("not an arena of this monitor")

// longest is the greatest length of an instruction.
const longest = 15

// has reports whether a monitor can have made an entry.
func (s *State) has(e Entry) bool {
	for i, arena := range s.Arenas {
		if first, end := Slots(arena, i == 0); e.Copy >= first && e.Copy < end {
			return e.Length > 0 && e.Length <= longest
		}
	}
	return false
}

// Parse parses home from its first ArenaSize bytes, which the target may have changed.
func (h Home) Parse(b []byte) (State, error) {
	if len(b) < homeSlots || [16]byte(b[offsetMagic:offsetMagic+16]) != magic {
		return State{}, ErrForeign
	}
	var s State
	word := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	for i := range MaxArenas {
		if a := word(offsetArenas + i*16); a != 0 && a <= 1<<47 {
			s.Arenas = append(s.Arenas, a)
		}
	}
	for i := range min(word(offsetCount), MaxEntries) {
		off := offsetEntries + int(i)*entrySize
		last := word(off + 24)
		e := Entry{word(off), word(off + 8), byte(last), word(off + 16), last&standing != 0}
		if !s.has(e) {
			return State{}, ErrForeign
		}
		s.Entries = append(s.Entries, e)
	}
	s.Old = ParseSigaction(b[offsetOld:])
	s.Opened = word(offsetOpened)
	return s, nil
}
