//go:build linux && amd64

package inline

import (
	"mirador/omis/node"
	"mirador/omis/program"
)

// The memory that a process shares with the monitor says itself what is in it, so that
// a later monitor finds its way:
//
//	header     what the memory is, and how many slots, groups and cells there are
//	directory  an entry for each cell
//	filters    the threads that programs are for
//	claims     the slots that threads have taken, in that order
//	programs   what stands where, for a later monitor
//	table      the address of each thread's slot, by the number of the thread
//	ledger     rows of threads that have ended
//	goroutines open intervals of functions in Go
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
	headerTurn    = 40 // by threads: where to look for a slot
	headerLedger  = 48 // how many records of the ledger were ever used
	headerSaid    = 56 // how many of programs
	headerCrowd   = 64 // by threads: 1 when some have joined the crowd
	headerTime    = 72 // the clock.Kind that intervals are measured by; 0: none so far
	headerClock   = 128
	headerKinds   = 1024
	headerSize    = 4096

	directoryAt = headerSize
	entrySize   = 64
	mostCells   = 1 << 15

	filtersAt   = 0x300000
	filterSize  = 4 * mostNamed
	mostFilters = 1 << 13

	claimsAt = 0x400000 // 4 bytes each: the number of a slot, plus one

	programsAt   = 0x500000
	programSize  = 64
	mostPrograms = 1 << 17

	tableAt   = 0x1000000
	roomSize  = 1 << roomShift
	roomShift = 16
)

// Nobody's page lies between the directory and the filters.
const (
	_ = uint(node.NobodysPage - directoryAt - mostCells*entrySize)
	_ = uint(filtersAt - node.NobodysPage - pageSize)
)

// magic begins the header; the number is that of the layout.
const magic = "mirador inline C"

// mostGroups is how many groups the header has room for, a byte each for their kind.
const mostGroups = headerSize - headerKinds

// mostNamed is how many threads a program tells apart; they are compared one by one.
const mostNamed = 16

// threadBits are those of the number of a thread: Linux gives none beyond four millions.
// Whatever else may be in a thread's memory where its number should be, the table has a
// place for it.
const threadBits = 22

// shape is how the memory is divided.
type shape struct {
	slots      int // more than there are threads at a time: those of ended threads are given free only now and then
	stride     int // of the table, as a power of two
	ledger     int // records
	goroutines int // rows of the table of goroutines, a power of two
	groups     int
}

// Shapes, the best first, for memory of so many bytes. In the first, 10,000 timers
// have room. The table is large where that makes finding a place in it quicker; nearly
// all of it is never touched.
var shapes = [...]struct {
	size  int
	shape shape
}{
	{1 << 36, shape{slots: 1 << 13, stride: 32 - threadBits, ledger: 1 << 23, goroutines: 1 << 19}},
	{1 << 32, shape{slots: 1 << 10, stride: 3, ledger: 1 << 18, goroutines: 1 << 15}},
	{1 << 28, shape{slots: 1 << 8, stride: 3, ledger: 1 << 15, goroutines: 1 << 12}},
}

// shapeFor finds the shape of memory of a size.
func shapeFor(size int) (s shape, ok bool) {
	for _, known := range shapes {
		if size >= known.size {
			s = known.shape
			s.groups = min((size-s.groupsAt())/(s.slots*roomSize), mostGroups)
			return s, true
		}
	}
	return s, false
}

func (s shape) ledgerAt() int { return tableAt + 1<<(threadBits+s.stride) }
func (s shape) groupsAt() int { return (s.goAt() + s.goSize() + roomSize - 1) &^ (roomSize - 1) }

// placeOf is where the table has the slot of a thread.
func (s shape) placeOf(tid int) int { return tableAt + tid<<s.stride }

// slotAt is where a slot is.
func (s shape) slotAt(slot int) int { return s.groupsAt() + slot<<roomShift }

// An entry of the directory.
const (
	entryKind  = 0  // a cellKind, 0: free; 4 bytes
	entryGroup = 4  // 4 bytes
	entryIndex = 8  // in the group; 4 bytes
	entryLost  = 16 // occurrences that left no trace
	entryReset = 24 // of a timer: how often it was reset or given away, by which intervals of goroutines are told that were opened before
	entryKey   = 32 // of the store
	maxKey     = entrySize - entryKey
)

// A slot begins its room in the first group.
const (
	slotTID   = 0 // of its owner; 0: nobody has it
	slotFirst = 8 // when it was taken, by the time stamp counter
	slotSize  = 64
)

// crowd is the slot that belongs to all threads that find none of their own: with so
// many of them that begin and end, or none but the threads themselves to look after
// slots when the monitor was killed. What they count is not told apart, but not lost.
const crowd = 0

// everybody is the number in the crowd's slot, which is nobody's.
const everybody = 1<<32 - 1

// A record of the ledger: a row of a thread that has ended, or what was added up of several
// (see fold.go).
const (
	recordEntry   = 0  // of the directory, plus one: written last; 4 bytes
	recordTID     = 4  // 0: of several; 4 bytes
	recordTaken   = 8  // slotFirst of the slot it was in
	recordStarted = 16 // when the thread was, as /proc has it
	recordFirst   = 24 // by which rows are ordered
	recordSerial  = 32 // in which order threads have ended
	recordValues  = 40 // those of a row, a word each
	recordSize    = 160
)

// What is said of a program.
const (
	programState  = 0 // 0: free; 4 bytes
	programKind   = 4 // an index of kinds; 4 bytes
	programAddr   = 8
	programSwitch = 16 // that of its code, before that stands anywhere
	programFilter = 24 // plus one; 0: none
	programText   = 32 // a digest of what it does
)

// cellKind is what a cell is for. The rows of a store of sums are in two cells, since
// nearly all of them are only counted up by one.
type cellKind uint32

const (
	cellOnes    cellKind = iota + 1 // a word: how often one was added
	cellSums                        // other numbers that were added
	cellTimers                      // intervals
	cellSpreads                     // and how many of them took how long

	// Rings of notes: of one room, and above that of two, four and so on.
	cellRing
	cellRest = cellRing + ringSizes // a group that belongs to the ring before it
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

// A row of a timer, in ticks of the clock, or in nanoseconds: see timing.go.
const (
	rowLimit      = 0 // of rowDepth; 0: the row is to be begun by its thread when it comes by
	rowFirst      = 8 // when the row was begun; 0: never
	rowDepth      = 16
	rowUnfinished = 24
	rowBegun      = 32 // as rowDone, when the last change began
	rowLast       = 40
	rowLeast      = 48
	rowMost       = 56
	rowTotal      = 64 // it would take a thread two centuries to go beyond a word
	rowSquares    = 72 // two words, the lower first
	rowDone       = 88 // how many intervals have ended

	// Where one in so many is timed; else nobody writes them.
	rowPassed = 96  // how many began, timed or not
	rowNext   = 104 // the number of the next to be timed, by which they are counted
	rowTurn   = 112 // and of the last one that the lot was drawn for
	rowSeed   = 120 // what lots are drawn from; a reset leaves it

	rowSize = 128

	// The buckets of a histogram, in the same unit, stand behind the row. There is room for
	// all that a duration of 64 bits can belong to: the last ones are for more than
	// program.Buckets has, which a time stamp counter takes decades to reach.
	rowBuckets = rowSize
	spreadSize = 4096
)

// The open intervals of all timers of a room lie behind their rows, by depth: first the
// outermost of each. So a timer that never has many open does not take the memory of those
// that have. rowDepth is a distance, from one depth to the next. Below all others there is
// room for another, so that nobody has to look whether he is at the lowest: it has the row's
// line (step.line), and where the stack pointer would be a number that is below every
// inverted stack pointer (step.away).
const (
	timersOfRoom  = 32
	spreadsOfRoom = 11
	openSize      = 16
	openSP        = 0 // the stack pointer, all bits inverted; 0: the thread is about to write it
	openFrom      = 8

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
	case cellTimers:
		return timersOfRoom
	case cellRest:
		return 0
	case cellSpreads:
		return spreadsOfRoom
	}
	return 1
}

// depth is how far two open intervals of a timer are apart, one within the other.
func (k cellKind) depth() int { return k.capacity() * openSize }

// hasIntervals tells whether cells are timers.
func (k cellKind) hasIntervals() bool { return k == cellTimers || k == cellSpreads }

// nearGroups are left to cells that are only counted up: so far a row is in reach of an
// instruction that has the address of the slot.
const nearGroups = 3

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
	case cellTimers:
		return rowSize
	case cellSpreads:
		return spreadSize
	}
	return roomSize
}

// kindOf is the kind of cell that a store begins with. A trace has its notes elsewhere,
// and counts them by ones.
func kindOf(k program.StoreKind) cellKind {
	switch k {
	case program.StoreIntervals:
		return cellTimers
	case program.StoreHistograms:
		return cellSpreads
	}
	return cellOnes
}

// storeKind is what stores have such cells.
func (k cellKind) storeKind() program.StoreKind {
	switch k {
	case cellTimers:
		return program.StoreIntervals
	case cellSpreads:
		return program.StoreHistograms
	}
	return program.StoreSums
}

// open is how far the open intervals of a timer are from its row.
func (c cell) open() int {
	k := c.kind
	return k.capacity()*k.size() + k.depth() + c.index*openSize - c.index*k.size()
}
