//go:build linux && amd64

package kernel

import (
	"encoding/binary"

	"mirador/omis"
)

// A row of a store, as programs write it: offsets of words. What rowSum and rowCount
// begin depends on the kind of the store.
const (
	rowDone  = 0  // as rowBegun, when the last change was through
	rowEpoch = 8  // of the store, when the row was begun
	rowFirst = 16 // when that was

	rowValues = 24
	rowSum    = rowValues

	rowCount      = rowValues
	rowUnfinished = 32
	rowLast       = 40
	rowMin        = 48
	rowMax        = 56
	rowTotal      = 64 // two words, the lower first
	rowSquares    = 80
	rowDepth      = 96

	rowBegun = 104 // changes so far
	rowOpen  = 112 // the open intervals, the outermost first: stack pointer, time
)

// maxOpen bounds the intervals of a thread that are open at a time. With it a row
// fits into the 2048 bytes that the kernel's allocator knows for it, its own part
// included. A recursion that is deeper is not measured further down; what is
// dropped counts as unfinished.
const maxOpen = 112

const (
	sizeOfSums      = rowOpen
	sizeOfIntervals = rowOpen + 16*maxOpen
)

// key names a thread for good.
type key struct {
	TID     uint64
	Started uint64 // nanoseconds since boot
}

func wordAt(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// consistent tells whether a copy of a row was not made in the middle of a change.
func consistent(b []byte) bool { return wordAt(b, rowDone) == wordAt(b, rowBegun) }

// decode reads a row.
func decode(k key, b []byte, kind omis.StoreKind) omis.Row {
	r := omis.Row{TID: int(k.TID), Started: k.Started / nsPerTick}
	if kind == omis.StoreSums {
		r.Value = int64(wordAt(b, rowSum))
		return r
	}
	r.Intervals = omis.Intervals{
		Count: int64(wordAt(b, rowCount)), Unfinished: int64(wordAt(b, rowUnfinished)), Open: int64(wordAt(b, rowDepth)),
		Last: wordAt(b, rowLast), Min: wordAt(b, rowMin), Max: wordAt(b, rowMax),
		Sum:     omis.Uint128{Lo: wordAt(b, rowTotal), Hi: wordAt(b, rowTotal+8)},
		Squares: omis.Uint128{Lo: wordAt(b, rowSquares), Hi: wordAt(b, rowSquares+8)},
	}
	return r
}
