//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"slices"
)

// An arena begins with switches, bytes that turn points on or off. They are in pages that the
// kernel clears in a forked child (MADV_WIPEONFORK). The first word of the arena is 0 only in such
// a child, which thereby recognises an arena of its parent. Pages of code follow: a head, then
// blocks up to the size in the head.
const (
	arenaCode   = 1 << 20 // size of the code of an ordinary arena
	perSwitch   = 64      // bytes of code for each switch
	firstSwitch = 64      // offset of the first switch; data about the arena precedes it
	arenaAlive  = 0       // offset of a word that is 0 only in a forked child
	headSize    = 64      // size of the head, with which the code begins; offsets in it follow
	headMagic   = 0       // 16 bytes
	headUsed    = 16      // size of the used code, including the head
	headLength  = 24      // size of the code
	headBase    = 32      // address of the shared memory in the process
	headShared  = 40      // its size
	blockAlign  = 16
)

// magic identifies an arena to later monitors.
var magic = [16]byte{'m', 'i', 'r', 'a', 'd', 'o', 'r', ' ', 'p', 'a', 't', 'c', 'h', ' ', '1', 0}

// A block begins with a word, written at once, that contains its size and kind. If the kind is a
// place, its description and its stub follow.
const (
	blockState    = 0
	blockAddr     = 8
	blockLength   = 16 // length of the window
	blockInsts    = 20
	blockPoints   = 22
	blockOriginal = 24 // the bytes that the jump replaces
	blockHead     = 32

	// blockNotes contains the notes of the place. Earlier versions of the monitor wrote 0 here.
	blockNotes = 18
	instSize   = 8  // the instruction's end in the window, and the beginning of its copy in the stub
	pointSize  = 32 // address, instruction, switch, beginning and end of the code in the stub
)

// These are the notes of a place.
const (
	noteExclusive = 1 << iota // the jump is at the first instruction of a function
	noteLate                  // the code runs after instructions that may fault
)

// kind tells what a block contains.
type kind uint64

const (
	holdsNothing kind = iota + 1
	holdsPlace
)

// block is a part of an arena.
type block struct {
	addr uint64
	size int
}

func (b block) contains(addr uint64) bool { return addr-b.addr < uint64(b.size) }

// state returns the first word of a block.
func (b block) state(k kind) uint64 { return uint64(k)<<32 | uint64(b.size) }

// arena is a mapping in the process that contains stubs for nearby code.
type arena struct {
	addr     uint64
	switches uint64 // size of the pages before the code
	size     uint64 // size of the code
	used     uint64 // size of the used code, including the head
	recorded uint64 // the value of used in the head in the process
	free     []block
	next     uint64   // offset of the first switch that was never used
	idle     []uint64 // switches that were used and are free again
}

// newArena returns an arena with at least room bytes of code. It has no address yet.
func newArena(room uint64) *arena {
	size := (max(arenaCode, room+headSize) + pageSize - 1) &^ (pageSize - 1)
	a := &arena{size: size, used: headSize, next: firstSwitch}
	a.switches = switchesFor(size)
	return a
}

// switchesFor returns the size of the pages of switches before size bytes of code.
func switchesFor(size uint64) uint64 {
	return (firstSwitch + size/perSwitch + pageSize - 1) &^ (pageSize - 1)
}

func (a *arena) length() uint64 { return a.switches + a.size }

func (a *arena) code() uint64 { return a.addr + a.switches }

func (a *arena) end() uint64 { return a.addr + a.length() }

// contains reports whether an address is in the code of the arena.
func (a *arena) contains(addr uint64) bool { return addr-a.code() < a.size }

// reach is the greatest distance of an arena from the code it serves. It leaves a margin for that
// code's data, which must be within the ±2 GB of a relative address.
const reach = 0x60000000

func (a *arena) near(addr uint64) bool { return a.addr-addr < reach || addr-a.addr < reach }

// take reserves a block.
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

// takeSwitch reserves a switch.
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

// owns reports whether a switch belongs to the arena.
func (a *arena) owns(change uint64) bool { return change-a.addr < a.switches }

// markUsed marks a switch as used if it belongs to the arena. The switch of a point may be in
// another arena than its stub.
func (a *arena) markUsed(change uint64) {
	if a.owns(change) {
		a.next = max(a.next, change-a.addr+1)
	}
}

// head returns the first bytes of the code.
func (a *arena) head(base, shared uint64) []byte {
	b := make([]byte, headSize)
	copy(b[headMagic:], magic[:])
	binary.LittleEndian.PutUint64(b[headUsed:], headSize) // no blocks yet
	binary.LittleEndian.PutUint64(b[headLength:], a.size)
	binary.LittleEndian.PutUint64(b[headBase:], base)
	binary.LittleEndian.PutUint64(b[headShared:], shared)
	return b
}
