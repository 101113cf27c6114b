//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"slices"
)

// An arena begins with bytes that say which points are on, in pages that a forked
// child finds empty (MADV_WIPEONFORK). The first word there is not zero: a child
// finds by it that an arena is its parent's. Then come pages of code: a head, and
// blocks, as many as the head says are used.
const (
	arenaCode   = 1 << 20 // of an ordinary arena
	perSwitch   = 64      // bytes of code for each switch there is room for
	firstSwitch = 64      // before it stands what is said of the arena
	arenaAlive  = 0       // before the switches: not zero but in a child
	headSize    = 64      // of the code
	headMagic   = 0       // 16 bytes
	headUsed    = 16      // bytes of the code, this head included
	headLength  = 24      // of the code
	headBase    = 32      // where the process has the shared memory
	headShared  = 40      // its size
	blockAlign  = 16
)

// magic tells an arena of ours, also to a monitor that did not make it.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'p', 'a', 't', 'c', 'h', ' ', '1', 0}

// A block begins with its size and what it holds, in a word that is written at
// once; then, if that is a place, comes its description, and its stub.
const (
	blockState    = 0
	blockAddr     = 8
	blockLength   = 16 // of the window
	blockInsts    = 20
	blockPoints   = 22
	blockOriginal = 24 // what the jump displaces
	blockHead     = 32

	// blockNotes is what must be said of the place. A monitor of an earlier version leaves 0
	// everywhere.
	blockNotes = 18
	instSize   = 8  // end in the window, begin of its copy in the stub
	pointSize  = 32 // addr, instruction, switch, begin and end of its code in the stub
)

// Notes of a place.
const (
	noteExclusive = 1 << iota // the jump stands at the first instruction of a function
	noteLate                  // code that was moved stands behind instructions that may fault
)

// kind is what a block holds.
type kind uint64

const (
	holdsNothing kind = iota + 1
	holdsPlace
)

// block is a piece of an arena.
type block struct {
	addr uint64
	size int
}

func (b block) contains(addr uint64) bool { return addr-b.addr < uint64(b.size) }

// state is the first word of a block.
func (b block) state(k kind) uint64 { return uint64(k)<<32 | uint64(b.size) }

// arena is a mapping in the process for stubs of code that is near.
type arena struct {
	addr     uint64
	switches uint64 // bytes before the code
	size     uint64 // of the code
	used     uint64 // of the code, the head included
	told     uint64 // as much of it as the head in the process says
	free     []block
	next     uint64   // the first switch that was never used
	idle     []uint64 // switches that were
}

// newArena plans one with room for some code.
func newArena(room uint64) *arena {
	size := (max(arenaCode, room+headSize) + pageSize - 1) &^ (pageSize - 1)
	a := &arena{size: size, used: headSize, next: firstSwitch}
	a.switches = switchesFor(size)
	return a
}

// switchesFor is how much stands before some code.
func switchesFor(size uint64) uint64 {
	return (firstSwitch + size/perSwitch + pageSize - 1) &^ (pageSize - 1)
}

func (a *arena) length() uint64 { return a.switches + a.size }

func (a *arena) code() uint64 { return a.addr + a.switches }

func (a *arena) end() uint64 { return a.addr + a.length() }

// contains tells whether an address is in code of the arena.
func (a *arena) contains(addr uint64) bool { return addr-a.code() < a.size }

// reach is how far an arena may be from code it works with, with a margin for
// the data of that code's module within the ±2 GB of a relative address.
const reach = 0x60000000

func (a *arena) near(addr uint64) bool { return a.addr-addr < reach || addr-a.addr < reach }

// take finds room for a block.
func (a *arena) take(size int) (block, bool) {
	size = align(size)
	for i, b := range a.free {
		if b.size == size {
			a.free = slices.Delete(a.free, i, i+1)
			return b, true
		}
	}
	if a.used+uint64(size) > a.size {
		return block{}, false
	}
	b := block{a.code() + a.used, size}
	a.used += uint64(size)
	return b, true
}

// takeSwitch finds a byte for a point.
func (a *arena) takeSwitch() (uint64, bool) {
	if n := len(a.idle); n > 0 {
		addr := a.idle[n-1]
		a.idle = a.idle[:n-1]
		return addr, true
	}
	if a.next == a.switches {
		return 0, false
	}
	a.next++
	return a.addr + a.next - 1, true
}

// owns tells whether a switch is of the arena.
func (a *arena) owns(change uint64) bool { return change-a.addr < a.switches }

// gave notes that a switch is taken, if it is of the arena. The stub of a point may be in
// another one by now, beside those of others.
func (a *arena) gave(change uint64) {
	if a.owns(change) {
		a.next = max(a.next, change-a.addr+1)
	}
}

// head is what the code begins with.
func (a *arena) head(base, shared uint64) []byte {
	b := make([]byte, headSize)
	copy(b[headMagic:], magic[:])
	binary.LittleEndian.PutUint64(b[headUsed:], headSize) // no block stands yet
	binary.LittleEndian.PutUint64(b[headLength:], a.size)
	binary.LittleEndian.PutUint64(b[headBase:], base)
	binary.LittleEndian.PutUint64(b[headShared:], shared)
	return b
}
