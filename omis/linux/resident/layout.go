//go:build linux && amd64

package resident

import (
	"encoding/binary"
	"errors"
	"io"
)

// An arena is a mapping in the target within reach of the code that has
// breakpoints. The first one, home, begins with the handler and the table;
// further ones hold copies alone. The handler's assembler knows these offsets.
const (
	ArenaSize = 0x20000

	offsetMagic   = 0x600
	offsetArenas  = 0x610 // pairs of begin and end, zero where unused
	MaxArenas     = 16
	offsetOld     = 0x720 // struct kernel_sigaction that was in force
	offsetCount   = 0x780
	offsetStep    = 0x788 // not 0 while single steps are asked for
	offsetOpened  = 0x790 // a set of signals
	offsetEntries = 0x1000
	entrySize     = 32
	MaxEntries    = 0x700
	homeSlots     = 0x10000
	SlotSize      = 64
	SigactionSize = 32
)

// magic tells an arena of ours, also to a monitor that did not make it.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'a', 'r', 'e', 'n', 'a', ' ', '4', 0}

// Home is the first arena of a target, known by its address.
type Home uint64

func (h Home) Handler() uint64  { return uint64(h) }
func (h Home) Restorer() uint64 { return uint64(h) + offsetRestorer }

// Stub is a system-call stub that stays; see StubCode.
func (h Home) Stub() uint64 { return uint64(h) + offsetStub }

// Old is where the action stands that the program had for SIGTRAP.
func (h Home) Old() uint64 { return uint64(h) + offsetOld }

// Count is where the number of valid table entries stands. It is raised after
// an entry was written, never lowered: a thread may be under way to the table
// for as long as it likes.
func (h Home) Count() uint64 { return uint64(h) + offsetCount }

// Stepping is where it stands that the monitor asks for single steps.
func (h Home) Stepping() uint64 { return uint64(h) + offsetStep }

// Opened is where the signals stand of whose handlers' masks SIGTRAP was taken.
func (h Home) Opened() uint64 { return uint64(h) + offsetOpened }

// Arena is where the bounds of the i-th arena stand.
func (h Home) Arena(i int) uint64 { return uint64(h) + offsetArenas + uint64(i)*16 }

// Entry is where the i-th table entry stands.
func (h Home) Entry(i int) uint64 { return uint64(h) + offsetEntries + uint64(i)*entrySize }

// Slots are the addresses for copies in an arena.
func Slots(arena uint64, home bool) (first, end uint64) {
	if home {
		return arena + homeSlots, arena + ArenaSize
	}
	return arena, arena + ArenaSize
}

// Mark is the byte of the i-th table entry that is not 0 while its INT3 stands: see
// Entry.Standing.
func (h Home) Mark(i int) uint64 { return h.Entry(i) + offsetMark }

const (
	offsetRestorer = 0x500
	offsetStub     = 0x540
	offsetSweep    = 0x560
)

// Image is what home holds before the first breakpoint.
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

// Bounds encodes the begin and end of an arena.
func Bounds(arena uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, arena)
	return binary.LittleEndian.AppendUint64(b, arena+ArenaSize)
}

// Entry leads from a breakpoint to its copy.
type Entry struct {
	Addr, Copy uint64
	Original   byte   // what the INT3 displaced
	Length     uint64 // of the displaced instruction
	// Standing tells that the INT3 is there, or is about to be. One that is found where
	// none of ours stands is somebody else's, a uprobe's for instance. So whoever takes an
	// INT3 out has it say so, the warden too.
	Standing bool
}

// standing is set in the last word of an entry, in the byte above the displaced one,
// which lies at offsetMark.
const (
	standing   = 1 << 8
	offsetMark = 25
)

// Encode gives the entry's bytes in the table.
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

// IsHere reports whether memory has a home there, as far as a few bytes tell.
func (h Home) IsHere(memory io.ReaderAt) bool {
	var found [len(magic)]byte
	_, err := memory.ReadAt(found[:], int64(h)+offsetMagic)
	return err == nil && found == magic
}

// ErrForeign is returned for memory that is no home.
var ErrForeign = errors.New("not an arena of this monitor")

// longest is how long an instruction is at most.
const longest = 15

// has reports whether an entry can be one that a monitor has made.
func (s *State) has(e Entry) bool {
	for i, arena := range s.Arenas {
		if first, end := Slots(arena, i == 0); e.Copy >= first && e.Copy < end {
			return e.Length > 0 && e.Length <= longest
		}
	}
	return false
}

// Parse reads home from its first ArenaSize bytes. The target may have written what stands
// there.
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
