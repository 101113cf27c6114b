//go:build linux && amd64

package inline

import (
	"mirador/omis/node"
	"mirador/omis/program"
)

// The memory that a process shares with the monitor describes itself, so that a later monitor can use it:
//
//	header     what the memory is, and how many slots, groups and cells there are
//	directory  an entry for each cell
//	filters    the threads that programs are limited to
//	claims     the slots that threads have taken, in that order
//	programs   what is at which address, for a later monitor
//	table      the address of each thread's slot, by the number of the thread
//	ledger     rows of threads that have ended
//	goroutines open intervals of functions in Go
//	groups     of cells of one kind, each with a room for every slot
//
// A slot belongs to a thread. All rooms of a slot have the same distance from each other. So a thread that
// knows its slot finds the row of any cell by adding a constant. Each room has pages of its own, so that no
// two threads write to one page.
const (
	headerMagic   = 0  // 16 bytes
	headerSlots   = 16 // a power of two
	headerClaimed = 24 // by threads: the number of claims
	headerGroups  = 32
	headerTurn    = 40 // by threads: where to search for a slot next
	headerLedger  = 48 // how many records of the ledger were ever used
	headerSaid    = 56 // how many descriptions of programs were ever used
	headerCrowd   = 64 // by threads: 1 when some threads share the crowd's slot
	headerTime    = 72 // the clock.Kind by which intervals are measured; 0: none so far
	headerClock   = 128
	headerKinds   = 1024
	headerSize    = 4096

	directoryAt = headerSize
	entrySize   = 64
	mostCells   = 1 << 15

	filtersAt   = 0x300000
	filterSize  = 4 * mostNamed
	mostFilters = 1 << 13

	claimsAt = 0x400000 // 4 bytes each: the number of a slot, plus 1

	programsAt   = 0x500000
	programSize  = 64
	mostPrograms = 1 << 17

	tableAt   = 0x1000000
	roomSize  = 1 << roomShift
	roomShift = 16
)

// An unused page is between the directory and the filters.
const (
	_ = uint(node.NobodysPage - directoryAt - mostCells*entrySize)
	_ = uint(filtersAt - node.NobodysPage - pageSize)
)

// magic begins the header; the last character is the version of the layout.
const magic = "mirador inline C"

// mostGroups is the most groups whose kinds the header has room for, one byte each.
const mostGroups = headerSize - headerKinds

// mostNamed is the most threads that a program can be limited to. The code compares them one by one.
const mostNamed = 16

// threadBits is the number of bits of thread numbers: Linux has none above four million. The table has a
// place for every such number, so whatever the thread's memory contains, the code does not write elsewhere.
const threadBits = 22

// shape says how the memory is divided.
type shape struct {
	slots      int // more than there are threads at a time, because slots of ended threads are freed only from time to time
	stride     int // of the table, as a power of two
	ledger     int // in records
	goroutines int // rows of the table of goroutines, a power of two
	groups     int
}

// Shapes for memory of so many bytes, the best first. The first has room for 10,000 timers. Its table is
// large, which makes the search shorter; nearly all of it is never touched.
var shapes = [...]struct {
	size  int
	shape shape
}{
	{1 << 36, shape{slots: 1 << 13, stride: 32 - threadBits, ledger: 1 << 23, goroutines: 1 << 19}},
	{1 << 32, shape{slots: 1 << 10, stride: 3, ledger: 1 << 18, goroutines: 1 << 15}},
	{1 << 28, shape{slots: 1 << 8, stride: 3, ledger: 1 << 15, goroutines: 1 << 12}},
}

// shapeFor returns the shape of memory of a size.
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

// placeOf returns where the table has the slot of a thread.
func (s shape) placeOf(tid int) int { return tableAt + tid<<s.stride }

// slotAt returns the offset of a slot.
func (s shape) slotAt(slot int) int { return s.groupsAt() + slot<<roomShift }

// An entry of the directory.
const (
	entryKind  = 0  // a cellKind, 0: free; 4 bytes
	entryGroup = 4  // 4 bytes
	entryIndex = 8  // in the group; 4 bytes
	entryLost  = 16 // lost hits
	entryReset = 24 // of a timer: how often it was reset or freed; tells which intervals of goroutines were opened before
	entryKey   = 32 // of the store
	maxKey     = entrySize - entryKey
)

// A slot begins its room in the first group.
const (
	slotTID   = 0 // thread that has the slot; 0: free
	slotFirst = 8 // when it was taken, by the time stamp counter
	slotSize  = 64
)

// crowd is the slot that all threads share which find no slot of their own: because so many threads begin
// and end, or because no monitor frees slots. What they count is not lost, but it is not known which thread
// it was.
const crowd = 0

// everybody is the thread number in the crowd's slot. No thread has it.
const everybody = 1<<32 - 1

// A record of the ledger: the row of a thread that has ended, or the sum of several such rows (fold.go).
const (
	recordEntry   = 0  // of the directory, plus 1; written last; 4 bytes
	recordTID     = 4  // 0: a sum; 4 bytes
	recordTaken   = 8  // slotFirst of the thread's slot
	recordStarted = 16 // start of the thread, as in /proc
	recordFirst   = 24 // by which rows are sorted
	recordSerial  = 32 // the order in which threads ended
	recordValues  = 40 // values of the row, a word each
	recordSize    = 160
)

// A description of a program.
const (
	programState  = 0 // 0: free; 4 bytes
	programKind   = 4 // an index of kinds; 4 bytes
	programAddr   = 8
	programSwitch = 16 // address of the switch of its code, before the code is installed
	programFilter = 24 // plus 1; 0: none
	programText   = 32 // a digest of what the program does
)

// cellKind is what a cell is for. A store of sums has one or two cells: most sums are only incremented by
// one, which takes less.
type cellKind uint32

const (
	cellOnes    cellKind = iota + 1 // a word: how often 1 was added
	cellSums                        // other numbers that were added
	cellTimers                      // intervals
	cellSpreads                     // intervals with a histogram

	// Rings of notes, of one room, two rooms, four rooms and so on.
	cellRing
	cellRest = cellRing + ringSizes // a group that belongs to the ring before it
)

// A reset does not clear cells of ones and sums. The monitor stores their values at this distance instead,
// so a hit need not check for a reset.
const former = roomSize / 2

// A row of a cell of sums. The number of additions is on both sides of the sum: the first is written before
// the sum, the second after it.
const (
	sumBegun = 0
	sumValue = 8
	sumDone  = 16
	sumSize  = 32

	oneSize = 8
)

// A row of a timer, in ticks of the clock or in nanoseconds: see timing.go.
const (
	rowLimit      = 0 // the most that rowDepth may be; 0: the thread must clear the row at its next hit
	rowFirst      = 8 // when the row was begun; 0: never
	rowDepth      = 16
	rowUnfinished = 24
	rowBegun      = 32 // rowDone after the last change that has begun
	rowLast       = 40
	rowLeast      = 48
	rowMost       = 56
	rowTotal      = 64 // a thread would need two centuries to exceed one word
	rowSquares    = 72 // two words, the lower word first
	rowDone       = 88 // how many intervals have ended

	// Only timers that time one in n intervals use these.
	rowPassed = 96  // how many intervals began, timed or not
	rowNext   = 104 // number of the next interval to be timed, counted by rowPassed
	rowTurn   = 112 // rowPassed at the end of the current turn
	rowSeed   = 120 // state of the random numbers; a reset leaves it

	rowSize = 128

	// The buckets of a histogram, in the same unit as the row, are behind it. There is room for the buckets
	// of all durations of 64 bits. The last ones are beyond program.Buckets; a time stamp counter reaches
	// them after decades.
	rowBuckets = rowSize
	spreadSize = 4096
)

// The open intervals of all timers of a room are behind their rows, sorted by depth: first the outermost
// interval of each timer. So only timers with many open intervals take much memory. rowDepth is the
// distance of the end of a row's open intervals. Below the outermost interval is room for another, so that
// code need not check whether any interval is open. It has the key of the row's line (step.line), and,
// where the stack pointer would be, a number below every inverted stack pointer (step.away).
const (
	timersOfRoom  = 32
	spreadsOfRoom = 11
	openSize      = 16
	openSP        = 0 // the stack pointer, all bits inverted; 0: the thread is about to write it
	openFrom      = 8

	// maxOpen is the most open intervals of a thread, as in placement kernel.
	maxOpen = 112
)

// capacity returns how many cells a room has.
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

// depth returns the distance between two open intervals of a timer.
func (k cellKind) depth() int { return k.capacity() * openSize }

// hasIntervals reports whether cells are timers.
func (k cellKind) hasIntervals() bool { return k == cellTimers || k == cellSpreads }

// nearGroups is the number of groups that are reserved for cells of ones: an instruction can address their
// rows from the slot.
const nearGroups = 3

// first returns the first usable cell of a group. In the first group, the slots themselves are at the place
// of its first cells.
func (k cellKind) first(group int) int {
	if group == 0 {
		return (slotSize + k.size() - 1) / k.size()
	}
	return 0
}

// size returns the distance between two rows.
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

// kindOf returns the kind of the first cell of a store. A trace has its notes elsewhere, and counts them by
// a cell of ones.
func kindOf(k program.StoreKind) cellKind {
	switch k {
	case program.StoreIntervals:
		return cellTimers
	case program.StoreHistograms:
		return cellSpreads
	}
	return cellOnes
}

// storeKind returns the kind of store that has such cells.
func (k cellKind) storeKind() program.StoreKind {
	switch k {
	case cellTimers:
		return program.StoreIntervals
	case cellSpreads:
		return program.StoreHistograms
	}
	return program.StoreSums
}

// open returns the distance of a timer's open intervals from its row.
func (c cell) open() int {
	k := c.kind
	return k.capacity()*k.size() + k.depth() + c.index*openSize - c.index*k.size()
}
