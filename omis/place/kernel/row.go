//go:build linux && amd64

package kernel

import (
	"sync/atomic"
	"unsafe"

	"mirador/omis/program"
)

// A row of a store, as programs write it: offsets of words. What rowSum and rowCount
// begin depends on the kind of the store.
const (
	rowDone    = 0  // as the word at begun, when the last change was through
	rowEpoch   = 8  // of the store, when the row was begun
	rowFirst   = 16 // when that was
	rowOwner   = 24 // whose row it is: the thread's number, and above it the store's
	rowStarted = 32 // when the thread began
	rowMark    = 40 // the link whose hit was counted last, while it takes over from another

	rowValues = 48
	rowSum    = rowValues

	rowCount      = rowValues
	rowUnfinished = 56
	rowLast       = 64
	rowMin        = 72
	rowMax        = 80
	rowTotal      = 88 // two words, the lower first
	rowSquares    = 104
	rowDepth      = 120
	rowSkipped    = 128
	rowLeft       = 136 // how many more begin until one is timed, that one included; 0: the lot is to be drawn
	rowRest       = 144 // and behind that one, until the next lot is drawn

	rowOpen    = 160 // the outermost open intervals: stack pointer, time
	rowBuckets = rowOpen + 16*near
)

// nobody is in place of a store's number in a row that was taken in vain: 32 bits of one.
const nobody = -1

// maxOpen bounds the intervals of a thread that are open at a time, near is how many of
// them are in the row itself; the others are in a table of their own. A recursion that
// is deeper is not measured further down; what is dropped counts as unfinished.
const (
	maxOpen = 112
	near    = 6
)

// form is what the rows of one kind of stores look like.
type form struct {
	kind  program.StoreKind
	size  int
	begun int // where the changes so far are counted
	deep  bool
	// buckets are how many the rows have, behind all else.
	buckets int
	// notes are how many the rows have room for, behind all else; a power of two.
	notes int

	chunk int // rows of a chunk, as a power of two
	// spare is how many rows are ready for new threads at any time: a process has to
	// begin and end as many within sweepEvery for one of them to find no room.
	spare int
}

// worthSweeping is how many rows make it worth while to look for ended threads.
func (f *form) worthSweeping() int { return min(f.spare/2, 1<<9) }

func (f *form) chunkSize() uint32 { return uint32(f.size) << f.chunk }

// rowsWithNotes are kinds of rows for StoreTraces, one for each size of rings.
const (
	rowsWithNotes = program.StoreKind(program.StoreKinds)
	rowKinds      = rowsWithNotes + ringSizes // more than any kind
)

// forms are those of the kinds of rows.
var forms = allForms()

// allForms makes them. A row with a histogram is a page, of which there are fewer in store.
func allForms() (list [rowKinds]form) {
	list[program.StoreSums] = form{kind: program.StoreSums, size: 1 << 6, begun: 56, chunk: 12, spare: 1 << 14}
	list[program.StoreIntervals] = form{kind: program.StoreIntervals, size: 1 << 8, begun: 152, deep: true, chunk: 12, spare: 1 << 14}
	list[program.StoreHistograms] = form{kind: program.StoreHistograms, size: 1 << 12, begun: 152, deep: true, buckets: program.Buckets, chunk: 8, spare: 1 << 10}
	for size := range program.StoreKind(ringSizes) {
		list[rowsWithNotes+size] = formWithNotes(size)
	}
	return list
}

// key names a thread of a store for good.
type key struct {
	Started uint64 // nanoseconds since boot
	TID     uint32
	Cell    uint32 // the number of the store
}

// image is a copy of the part of a row that readers want.
type image [rowOpen / 8]uint64

func (m *image) key() key {
	return key{Started: m.at(rowStarted), TID: uint32(m.at(rowOwner)), Cell: uint32(m.at(rowOwner) >> 32)}
}

func (m *image) at(member int) uint64 { return m[member/8] }

// row is a row in shared memory.
type row struct {
	form *form
	b    []byte
}

func (r row) word(member int) uint64 { return wordIn(r.b, member).Load() }

func (r row) key() key {
	owner := r.word(rowOwner)
	return key{Started: r.word(rowStarted), TID: uint32(owner), Cell: uint32(owner >> 32)}
}

// copy is false where the copy was made in the middle of a change.
func (r row) copy(to *image) bool {
	for at := rowDone; at < r.form.begun; at += 8 {
		to[at/8] = r.word(at)
	}
	return to.at(rowDone) == r.word(r.form.begun)
}

// clear makes it a row as good as new.
func (r row) clear() {
	for at := 0; at < len(r.b); at += 8 {
		wordIn(r.b, at).Store(0)
	}
}

// decode reads a copy.
func (m *image) decode(kind program.StoreKind) program.Row {
	r := program.Row{TID: int(uint32(m.at(rowOwner))), Started: m.at(rowStarted) / nsPerTick}
	if kind == program.StoreSums || kind >= rowsWithNotes {
		r.Value = int64(m.at(rowSum))
		return r
	}
	r.Intervals = program.Intervals{
		Count: int64(m.at(rowCount)), Unfinished: int64(m.at(rowUnfinished)), Open: int64(m.at(rowDepth)), Skipped: int64(m.at(rowSkipped)),
		Last: m.at(rowLast), Min: m.at(rowMin), Max: m.at(rowMax),
		Sum:     program.Uint128{Lo: m.at(rowTotal), Hi: m.at(rowTotal + 8)},
		Squares: program.Uint128{Lo: m.at(rowSquares), Hi: m.at(rowSquares + 8)},
	}
	return r
}

func wordIn(b []byte, at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[at])) }
