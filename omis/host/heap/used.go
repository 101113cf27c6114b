//go:build linux

package heap

import "encoding/binary"

// Limits of one reading. A program that has more of either has its remaining free chunks
// counted as used.
const (
	mostArenas = 1 << 10
	mostChunks = 1 << 14
)

// flags are the bits in the size field of a chunk that are no part of the size.
const flags = 7

// used adds up what the arenas got from the kernel and what is mapped separately, and
// subtracts the free chunks.
func (t *tables) used(m memory) (int64, bool) {
	var word [8]byte
	if !m.at(t.mapped, word[:]) {
		return 0, false
	}
	sum := binary.LittleEndian.Uint64(word[:])
	budget := mostChunks
	arena := t.main
	for range mostArenas {
		a := &area{m: m, addr: arena, head: t.head, budget: &budget}
		if !a.read() || arena == t.main && !looksEmpty(a.data[t.head:], arena+t.head) {
			return 0, false
		}
		sum += a.used()
		if arena = a.next(); arena == t.main {
			return int64(sum), sum < 1<<47
		}
	}
	return 0, false
}

// area is an arena of the allocator.
type area struct {
	m      memory
	addr   uint64
	head   uint64
	data   []byte
	budget *int // chunks that may still be looked at
}

func (a *area) read() bool {
	a.data = make([]byte, a.head+arenaTail)
	return a.m.at(a.addr, a.data)
}

func (a *area) word(at uint64) uint64 { return binary.LittleEndian.Uint64(a.data[at:]) }
func (a *area) next() uint64          { return a.word(a.head + afterMap) }
func (a *area) system() uint64        { return a.word(a.head + systemAt) }

// used returns what the arena got from the kernel, less what is free in it.
func (a *area) used() uint64 {
	system := a.system()
	if system == 0 {
		return 0 // its top is no chunk yet
	}
	var top [8]byte
	free := uint64(0)
	if a.m.at(a.word(a.head-topBefore)+8, top[:]) {
		free = binary.LittleEndian.Uint64(top[:]) &^ flags
	}
	for at := a.head - topBefore - 10*8; at < a.head-topBefore; at += 8 {
		free += a.fast(a.word(at))
	}
	for bin := range uint64(bins) {
		free += a.bin(a.head + bin*binSize)
	}
	return system - min(free, system)
}

// chunk reads the size of a chunk and its links.
func (a *area) chunk(addr uint64) (size, forward, back uint64, ok bool) {
	var b [24]byte
	if *a.budget--; *a.budget < 0 || addr%16 != 0 || !a.m.at(addr+8, b[:]) {
		return 0, 0, 0, false
	}
	size = binary.LittleEndian.Uint64(b[:]) &^ flags
	return size, binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), size >= 32 && size <= a.system()
}

// fast adds up the chunks of a fast bin, whose links are encoded by their own addresses
// (since glibc 2.32).
func (a *area) fast(addr uint64) (free uint64) {
	for addr != 0 {
		size, forward, _, ok := a.chunk(addr)
		if !ok {
			break
		}
		free += size
		if next := forward ^ (addr+16)>>12; forward != 0 && next%16 == 0 {
			addr = next
		} else {
			addr = forward
		}
	}
	return free
}

// bin adds up the chunks of another bin, until a link does not lead back: then a thread is
// changing the list.
func (a *area) bin(at uint64) (free uint64) {
	own := a.addr + at - binSize
	before := own
	for addr := a.word(at); addr != own; {
		size, forward, back, ok := a.chunk(addr)
		if !ok || back != before {
			break
		}
		free += size
		before, addr = addr, forward
	}
	return free
}
