//go:build linux && amd64

package code

import "mirador/omis/program"

// Offsets in a row of a store. The values of a sum begin at RowSum, the values of intervals at rowCount.
const (
	rowDone    = 0  // a copy of the word at Form.Begun; it is different during a change
	RowEpoch   = 8  // epoch of the store when the row was cleared
	RowFirst   = 16 // time when the row was cleared
	RowOwner   = 24 // number of the thread, and in the upper half number of the store; 0: none yet
	RowStarted = 32 // start of the thread
	rowMark    = 40 // while one link replaces another, serial number of the link that counted the last hit: see once

	rowValues = 48
	RowSum    = rowValues

	rowCount      = rowValues
	rowUnfinished = 56
	rowLast       = 64
	rowMin        = 72
	rowMax        = 80
	rowTotal      = 88 // two words, the lower word first
	rowSquares    = 104
	rowDepth      = 120
	rowSkipped    = 128
	rowLeft       = 136 // for sampled intervals: how many begin until one is timed, which is included; 0: draw a new number
	rowRest       = 144 // how many begin after the timed one, before a new number is drawn

	rowOpen    = 160 // the outermost open intervals: stack pointer and time of each
	rowBuckets = rowOpen + 16*near
)

// unlisted is written for the number of the store in a row that the program has taken but could not enter into the
// index. The monitor frees such rows.
const unlisted = -1

// maxOpen is the most open intervals of a thread, and near is how many of them are in the row itself. The
// others are in Pool.Deep. Deeper intervals are not measured and count as unfinished.
const (
	maxOpen = 112
	near    = 6
)

// Form describes the rows of one kind.
type Form struct {
	Kind  program.StoreKind
	Size  int
	Begun int // offset of the number of changes so far
	Deep  bool
	// Buckets is the number of buckets of the histogram at the end of the row.
	Buckets int
	// Notes is the length of the ring at the end of the row, a power of two.
	Notes int

	Chunk int // rows of a chunk, as a power of two
	// Spare is the number of free rows that are ready for new threads. Hits get lost only if a process
	// begins that many threads between two sweeps.
	Spare int
}

// WorthSweeping is the number of rows from which on the monitor looks for ended threads.
func (f *Form) WorthSweeping() int { return min(f.Spare/2, 1<<9) }

// ChunkSize returns the size of a chunk of rows.
func (f *Form) ChunkSize() uint32 { return uint32(f.Size) << f.Chunk }

// RowsWithNotes is the first kind of row for StoreTraces. There is one kind for each size of ring.
const (
	RowsWithNotes = program.StoreKind(program.StoreKinds)
	RowKinds      = RowsWithNotes + ringSizes // one more than the last kind
)

// forms has the form of each kind of row.
var forms = allForms()

// FormOf returns the form of a kind of row.
func FormOf(kind program.StoreKind) *Form { return &forms[kind] }

// allForms makes the forms. Rows with histograms take a page each, so fewer of them are kept ready.
func allForms() (list [RowKinds]Form) {
	list[program.StoreSums] = Form{Kind: program.StoreSums, Size: 1 << 6, Begun: 56, Chunk: 12, Spare: 1 << 14}
	list[program.StoreIntervals] = Form{Kind: program.StoreIntervals, Size: 1 << 8, Begun: 152, Deep: true, Chunk: 12, Spare: 1 << 14}
	list[program.StoreHistograms] = Form{Kind: program.StoreHistograms, Size: 1 << 12, Begun: 152, Deep: true, Buckets: program.Buckets, Chunk: 8, Spare: 1 << 10}
	for size := range program.StoreKind(ringSizes) {
		list[RowsWithNotes+size] = formWithNotes(size)
	}
	return list
}

// Key identifies a thread and a store, also after the number of the thread is used again.
type Key struct {
	Started uint64 // nanoseconds since boot
	TID     uint32
	Cell    uint32 // number of the store
}

// Thread returns the thread of a key.
func (k Key) Thread() Thread { return Thread{int(k.TID), k.Started / NsPerTick} }

// Image is a copy of the part of a row before its open intervals.
type Image [rowOpen / 8]uint64

// Key returns the thread and the store of the row.
func (m *Image) Key() Key {
	return Key{Started: m.At(RowStarted), TID: uint32(m.At(RowOwner)), Cell: uint32(m.At(RowOwner) >> 32)}
}

// At returns the word at an offset.
func (m *Image) At(member int) uint64 { return m[member/8] }

// Row is a row in shared memory.
type Row struct {
	Form *Form
	B    []byte
}

// Word reads the word at an offset.
func (r Row) Word(member int) uint64 { return WordIn(r.B, member).Load() }

// Key returns the thread and the store of the row.
func (r Row) Key() Key {
	owner := r.Word(RowOwner)
	return Key{Started: r.Word(RowStarted), TID: uint32(owner), Cell: uint32(owner >> 32)}
}

// Copy copies the row. It returns false if a program changed the row meanwhile.
func (r Row) Copy(to *Image) bool {
	for at := rowDone; at < r.Form.Begun; at += 8 {
		to[at/8] = r.Word(at)
	}
	return to.At(rowDone) == r.Word(r.Form.Begun)
}

// Clear makes the row a new one.
func (r Row) Clear() {
	for at := 0; at < len(r.B); at += 8 {
		WordIn(r.B, at).Store(0)
	}
}

// Decode returns the values of the copied row.
func (m *Image) Decode(kind program.StoreKind) program.Row {
	r := program.Row{TID: int(uint32(m.At(RowOwner))), Started: m.At(RowStarted) / NsPerTick}
	if kind == program.StoreSums || kind >= RowsWithNotes {
		r.Value = int64(m.At(RowSum))
		return r
	}
	r.Intervals = program.Intervals{
		Count: int64(m.At(rowCount)), Unfinished: int64(m.At(rowUnfinished)), Open: int64(m.At(rowDepth)), Skipped: int64(m.At(rowSkipped)),
		Last: m.At(rowLast), Min: m.At(rowMin), Max: m.At(rowMax),
		Sum:     program.Uint128{Lo: m.At(rowTotal), Hi: m.At(rowTotal + 8)},
		Squares: program.Uint128{Lo: m.At(rowSquares), Hi: m.At(rowSquares + 8)},
	}
	return r
}

// ImageOf returns the image of a row with given values, the reverse of Decode.
func ImageOf(r *program.Row, kind program.StoreKind, cell Unit, epoch, first uint64) (m Image) {
	set := func(member int, v uint64) { m[member/8] = v }
	set(RowEpoch, epoch)
	set(RowFirst, first)
	set(RowOwner, uint64(cell)<<32|uint64(uint32(r.TID)))
	set(RowStarted, r.Started*NsPerTick)
	if !kind.HasIntervals() {
		set(RowSum, uint64(r.Value))
		return m
	}
	set(rowCount, uint64(r.Count))
	set(rowUnfinished, uint64(r.Unfinished))
	set(rowLast, r.Last)
	set(rowMin, r.Min)
	set(rowMax, r.Max)
	set(rowTotal, r.Sum.Lo)
	set(rowTotal+8, r.Sum.Hi)
	set(rowSquares, r.Squares.Lo)
	set(rowSquares+8, r.Squares.Hi)
	set(rowDepth, uint64(r.Open))
	set(rowSkipped, uint64(r.Skipped))
	return m
}
