//go:build linux && amd64

package inline

import "mirador/omis"

// The memory that a process shares with the monitor says itself what is in it, so that
// a later monitor finds its way:
//
//	header     what the memory is, and how many slots, groups and cells there are
//	directory  an entry for each cell
//	filters    the threads that programs are for
//	claims     the slots that threads have taken, in that order
//	groups     of cells of one kind, each with a room for every slot
//
// A slot belongs to a thread. All rooms of a slot lie at the same distance from each
// other, so that a thread that knows its slot finds the row of any cell by adding a
// number that is known when the code is made. Rooms take pages of their own: nobody
// writes next to another thread.
const (
	headerMagic   = 0  // 16 bytes
	headerSlots   = 16 // a power of two
	headerClaimed = 24 // by threads: how many claims there were
	headerGroups  = 32
	headerKinds   = 1024 // a byte for each group
	headerSize    = 4096

	directoryAt = headerSize
	entrySize   = 64
	mostCells   = 1 << 15

	filtersAt   = 0x300000
	filterSize  = 4 * mostNamed
	mostFilters = 1 << 13

	claimsAt = 0x400000 // 4 bytes each: the number of a slot, plus one

	groupsAt  = 0x1000000
	roomSize  = 1 << roomShift
	roomShift = 16
)

// magic begins the header; the number is that of the layout.
const magic = "mirador inline 1"

// mostGroups is how many groups the header has room for.
const mostGroups = headerSize - headerKinds

// mostNamed is how many threads a program tells apart; they are compared one by one.
const mostNamed = 16

// Slots: more than there are threads at a time, since those of threads that ended are
// given free only now and then. With the memory that there should be, 10,000 timers have
// room.
const (
	mostSlots  = 1 << 13
	leastSlots = 1 << 8
	fewGroups  = 16 // as many there must be
)

// slotsFor is how many slots go into so much memory.
func slotsFor(size int) (n int, ok bool) {
	for n = mostSlots; n >= leastSlots; n /= 2 {
		groups := 4 * fewGroups
		if n == leastSlots {
			groups = fewGroups
		}
		if groupsAt+groups*n*roomSize <= size {
			return n, true
		}
	}
	return 0, false
}

// An entry of the directory.
const (
	entryKind  = 0  // a cellKind, 0: free; 4 bytes
	entryGroup = 4  // 4 bytes
	entryIndex = 8  // in the group; 4 bytes
	entryLost  = 16 // occurrences that left no trace
	entryKey   = 24 // of the store
	maxKey     = entrySize - entryKey
)

// A slot begins its room in the first group.
const (
	slotKey   = 0  // names the thread; see keyShift
	slotTID   = 8  // 4 bytes
	slotFirst = 16 // when it was claimed, by the time stamp counter
	slotSize  = 64
)

// Values of slotKey that are no thread's. A slot that was given free cannot be vacant
// again: threads that were sent past it would not find theirs.
const (
	vacant    = 0
	relented  = 1
	keyShift  = 42 // a key is the thread's number shifted so far, plus its pointer
	threadMax = 1 << 22
)

// cellKind is what a cell is for. The rows of a store of sums are in two cells, since
// nearly all of them are only counted up by one.
type cellKind uint32

const (
	cellOnes   cellKind = iota + 1 // a word: how often one was added
	cellSums                       // other numbers that were added
	cellTimers                     // intervals
)

// Ones and sums are never cleared by a reset, but their values remembered at a distance,
// so that whoever counts does not have to look whether there was one.
const former = roomSize / 2

// A row of a cell of sums: the sum itself lies between two numbers of additions, the
// first of which is written before it, and the second after.
const (
	sumBegun = 0
	sumValue = 8
	sumDone  = 16
	sumSize  = 32

	oneSize = 8
)

// A row of a timer, in ticks of the clock.
const (
	rowState      = 0 // see below
	rowFirst      = 8 // when it was begun
	rowDepth      = 16
	rowUnfinished = 24
	rowBegun      = 32 // as rowDone, when the last change began
	rowLast       = 40
	rowLeast      = 48 // all bits inverted, so that 0 means: none yet
	rowMost       = 56
	rowTotal      = 64 // two words, the lower first
	rowSquares    = 80
	rowDone       = 96 // how many intervals have ended
	rowSize       = 128
)

// Values of rowState. Nothing is cleared at the first hit: that is where a thread waits
// for pages of memory, and where signals come.
const (
	rowUnused = 0 // all of it is zero
	rowCounts = 1
	rowStale  = 2 // to be cleared by its thread when it comes by
)

// The open intervals of all timers of a room lie by depth: first the outermost of
// each. So a timer that never has many open does not take the memory of those that
// have. rowDepth is a distance, from one depth to the next; a depth below all others is
// never written, so that nobody has to look whether he is at the lowest.
const (
	timersOfRoom = 32
	openAt       = timersOfRoom * rowSize
	openSize     = 16
	openSP       = 0 // the stack pointer, all bits inverted; 0: the thread is about to write it
	openFrom     = 8
	depthSize    = timersOfRoom * openSize

	// maxOpen bounds the intervals of a thread that are open at a time, as in the
	// placement kernel.
	maxOpen = 112
)

// capacity is how many cells a room holds.
func (k cellKind) capacity() int {
	switch k {
	case cellOnes:
		return former / oneSize
	case cellSums:
		return former / sumSize
	}
	return timersOfRoom
}

// first is the first cell that may be used in a group. The slots lie where the first
// group has its first cells.
func (k cellKind) first(group int) int {
	if group == 0 {
		return (slotSize + k.size() - 1) / k.size()
	}
	return 0
}

// size is how far two rows are apart.
func (k cellKind) size() int {
	switch k {
	case cellOnes:
		return oneSize
	case cellSums:
		return sumSize
	}
	return rowSize
}

// kindOf is the kind of cell that a store begins with.
func kindOf(k omis.StoreKind) cellKind {
	if k == omis.StoreSums {
		return cellOnes
	}
	return cellTimers
}

// open is how far the open intervals of a timer are from its row.
func (c cell) open() int {
	return openAt + depthSize + c.index*openSize - c.index*rowSize
}
