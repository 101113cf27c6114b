//go:build linux && amd64

package inline

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is what a process shares with the monitor. Who uses it has the lock of the
// process, but for what threads of the process do.
type memory struct {
	shape
	bytes     []byte
	base      uint64 // where the process has it
	inherited bool   // a former monitor has made the layout
	next      map[cellKind]cell
	free      map[cellKind][]cell
	entries   numbers // of the directory
	filters   numbers
	records   numbers // of the ledger
	serial    uint64  // of the record made last
	program   numbers
	swaps     bool      // pages may be elsewhere than in memory
	rooms     [][]pages // by groups and slots: what is known of the pages of a room
	kinds     []byte    // of groups, as the header has them for a later monitor
	used      int       // how many groups are
	extents   extents   // nil: it is not known what was written to, but by inUse
	spent     int       // of the budget
}

// numbers are given to whoever needs one, and taken back.
type numbers struct {
	most, next int
	free       []int
}

func (n *numbers) take() (int, error) {
	if k := len(n.free); k > 0 {
		number := n.free[k-1]
		n.free = n.free[:k-1]
		return number, nil
	}
	if n.next == n.most {
		return 0, errNoRoom
	}
	n.next++
	return n.next - 1, nil
}

// room is how many can be taken yet.
func (n *numbers) room() int { return n.most - n.next + len(n.free) }

func (n *numbers) give(number int) { n.free = append(n.free, number) }

// cell is where the rows of a store are, or some of them.
type cell struct {
	entry        int // of the directory
	kind         cellKind
	group, index int
}

var errNoRoom = errors.New("the memory that is shared with the process has room for no more counters and timers")

// newMemory makes a layout in memory that is all zero, or has one already.
func newMemory(b []byte, base uint64) (*memory, error) {
	sh, ok := shapeFor(len(b))
	if !ok {
		return nil, fmt.Errorf("the process shares no more than %d MB of memory with the monitor", len(b)>>20)
	}
	m := &memory{
		shape: sh, bytes: b, base: base,
		next: make(map[cellKind]cell), free: make(map[cellKind][]cell),
		entries: numbers{most: mostCells}, filters: numbers{most: mostFilters}, records: numbers{most: sh.ledger}, program: numbers{most: mostPrograms},
		rooms: make([][]pages, sh.groups), kinds: make([]byte, sh.groups),
	}
	var s unix.Sysinfo_t
	m.swaps = unix.Sysinfo(&s) != nil || s.Totalswap > 0
	switch said := [len(magic)]byte(b); {
	case said == [len(magic)]byte{}:
		copy(b, magic)
		binary.LittleEndian.PutUint64(b[headerSlots:], uint64(sh.slots))
		m.word32(m.slotAt(crowd) + slotTID).Store(everybody)
		m.word(headerTurn).Store(crowd + 1)
	case string(said[:]) == magic && m.word(headerSlots).Load() == uint64(sh.slots):
		m.inherited = true
		return m, m.readLayout()
	default:
		return nil, errors.New("a monitor of another version has left its memory in the process")
	}
	return m, nil
}

func (m *memory) word(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&m.bytes[at]))
}

func (m *memory) word32(at int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&m.bytes[at]))
}

// distance of a cell's row from its thread's slot.
func (m *memory) distance(c cell) uint64 {
	return uint64(c.group*m.slots)<<roomShift + uint64(c.index*c.kind.size())
}

// rowAt is where the row of a slot in a cell is.
func (m *memory) rowAt(slot int, c cell) int { return m.slotAt(slot) + int(m.distance(c)) }

func entryAt(entry int) int { return directoryAt + entry*entrySize }

func (m *memory) lost(c cell) *atomic.Uint64 { return m.word(entryAt(c.entry) + entryLost) }

// take reserves a cell for a store of that key. Its rows are zero.
func (m *memory) take(kind cellKind, key string) (c cell, err error) {
	if n := len(m.free[kind]); n > 0 {
		c = m.free[kind][n-1]
	} else if c, err = m.unused(kind); err != nil {
		return c, err
	}
	if c.entry, err = m.entries.take(); err != nil {
		return c, err
	}
	if n := len(m.free[kind]); n > 0 {
		m.free[kind] = m.free[kind][:n-1]
	} else {
		m.next[kind] = cell{group: c.group, index: c.index + 1}
	}
	b := m.bytes[entryAt(c.entry):][:entrySize]
	binary.LittleEndian.PutUint32(b[entryGroup:], uint32(c.group))
	binary.LittleEndian.PutUint32(b[entryIndex:], uint32(c.index))
	binary.LittleEndian.PutUint64(b[entryLost:], 0)
	m.forgetGoroutines(c) // of a timer that had the entry before
	name := nameOf(key)
	copy(b[entryKey:], name[:])
	m.word32(entryAt(c.entry) + entryKind).Store(uint32(kind)) // last: now it is all there
	return c, nil
}

// resume finds out what is free beside the cells that a former monitor has taken.
func (m *memory) resume(taken []listed) {
	type place struct{ group, index int }
	entries, places := make(map[int]bool), make(map[place]bool)
	for _, c := range taken {
		entries[c.entry], places[place{c.group, c.index}] = true, true
		m.entries.next = max(m.entries.next, c.entry+1)
	}
	for entry := range m.entries.next {
		if !entries[entry] {
			m.entries.give(entry)
		}
	}
	for group := range m.used {
		kind := cellKind(m.kinds[group])
		if kind == 0 || kind > cellRest {
			continue
		}
		for index := kind.first(group); index < kind.capacity(); index++ {
			if !places[place{group, index}] {
				m.free[kind] = append(m.free[kind], cell{kind: kind, group: group, index: index})
			}
		}
		m.next[kind] = cell{group: group, index: kind.capacity()}
	}
}

// nameOf is what the directory says of a key: itself where there is room.
func nameOf(key string) (name [maxKey]byte) {
	if len(key) < maxKey {
		copy(name[:], key)
		return name
	}
	digest := sha256.Sum256([]byte(key))
	copy(name[copy(name[:], key[:maxKey-len(digest)]):], digest[:])
	return name
}

// unused is the next cell that never was used.
func (m *memory) unused(kind cellKind) (cell, error) {
	c, begun := m.next[kind]
	c.kind = kind
	if begun && c.index < kind.capacity() {
		return c, nil
	}
	if kind != cellOnes {
		c.group = min(nearGroups, m.groups/4)
	}
	n := kind.groups()
	for ; c.group+n <= m.groups; c.group++ {
		if m.isFree(c.group, n) {
			break
		}
	}
	if c.group+n > m.groups {
		return c, errNoRoom
	}
	c.index = kind.first(c.group)
	m.next[kind] = c
	for rest := c.group + 1; rest < c.group+n; rest++ {
		m.kinds[rest] = byte(cellRest)
	}
	m.kinds[c.group] = byte(kind)
	copy(m.bytes[headerKinds:], m.kinds)
	m.used = max(m.used, c.group+n)
	m.word(headerGroups).Store(uint64(m.used))
	return c, nil
}

// isFree tells that so many groups, one after the other, have no cells.
func (m *memory) isFree(group, n int) bool {
	return !slices.ContainsFunc(m.kinds[group:][:n], func(kind byte) bool { return kind != 0 })
}

// give frees a cell, whose rows are zero again.
func (m *memory) give(c cell) {
	m.word32(entryAt(c.entry) + entryKind).Store(0)
	m.entries.give(c.entry)
	m.free[c.kind] = append(m.free[c.kind], c)
}

const pageSize = 4096

// pages are those of a room, a bit for each.
type pages struct {
	used  uint16 // they are known to be in use
	asked bool   // the kernel has been asked; what the monitor alone writes has not changed since
}

// inUse tells whether a page of a room was ever written to. To look at one that was not
// would make the kernel find memory for it.
func (m *memory) inUse(at int) bool {
	if m.swaps {
		return true // what the kernel says is not in memory may be on a disk
	}
	known, page := m.room(at), pageOf(at)
	return known.used&page != 0 || m.ask(at, known)&page != 0
}

// wasReset is inUse for what the monitor alone writes (see forgetSums): the kernel need
// not be asked again.
func (m *memory) wasReset(at int) bool {
	if known := m.room(at); known.asked && !m.swaps {
		return known.used&pageOf(at) != 0
	}
	return m.inUse(at)
}

// ask has the kernel say which pages of a room are in use.
func (m *memory) ask(at int, known *pages) uint16 {
	begin := at - (at-m.groupsAt())%roomSize
	var in [roomSize / pageSize]byte
	if !m.resident(begin, in[:]) {
		return ^uint16(0)
	}
	for i, b := range in {
		known.used |= uint16(b&1) << i
	}
	known.asked = true
	return known.used
}

// resident has the kernel say of pages whether they are in memory; false: it does not.
func (m *memory) resident(begin int, in []byte) bool {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m.bytes[begin])), uintptr(len(in)*pageSize), uintptr(unsafe.Pointer(&in[0])))
	return errno == 0
}

func pageOf(at int) uint16 { return 1 << (at % roomSize / pageSize) }

// room is what is known of the pages of the room that something is in.
func (m *memory) room(at int) *pages {
	room := (at - m.groupsAt()) >> roomShift
	group := &m.rooms[room/m.slots]
	if *group == nil {
		*group = make([]pages, m.slots)
	}
	return &(*group)[room%m.slots]
}

// forget empties a room, and gives its pages back.
func (m *memory) forget(room int) error {
	begin := m.groupsAt() + room<<roomShift
	*m.room(begin) = pages{}
	return unix.Madvise(m.bytes[begin:][:roomSize], unix.MADV_REMOVE)
}

// wipe clears a row.
func (m *memory) wipe(slot int, c cell) {
	if c.kind >= cellRing {
		m.wipeRing(slot, c)
		return
	}
	at := m.rowAt(slot, c)
	for i := 0; i < c.kind.size(); i += 8 {
		if m.inUse(at+i) && m.word(at+i).Load() != 0 {
			m.word(at + i).Store(0)
		}
	}
	if !c.kind.hasIntervals() {
		if m.inUse(at + former) {
			clear(m.bytes[at+former:][:c.kind.size()])
		}
		return
	}
	if away := m.away(slot, c); m.inUse(away) {
		m.word(away).Store(0)
	}
	for depth := range maxOpen {
		open := m.rowAt(slot, c) + c.open() + depth*c.kind.depth()
		if !m.inUse(open) {
			return
		}
		m.word(open + openSP).Store(0)
	}
}

// freeSlot empties all rooms of a slot whose thread has ended, and lets others have it.
func (m *memory) freeSlot(slot, tid int) error {
	for group := 1; group < m.used; group++ {
		if m.kinds[group] == 0 {
			continue
		}
		if err := m.forget(group*m.slots + slot); err != nil {
			return err
		}
	}
	at := m.slotAt(slot)
	for page := pageSize; page < roomSize; page += pageSize {
		if m.inUse(at + page) {
			clear(m.bytes[at+page:][:pageSize])
		}
	}
	clear(m.bytes[at+slotFirst:][:pageSize-slotFirst])
	m.word(m.placeOf(tid)).CompareAndSwap(m.base+uint64(at), 0)
	m.word(at + slotTID).Store(0)
	return nil
}

// filterWord is where a program has the number of a thread that it is for.
func (m *memory) filterWord(filter, i int) *atomic.Uint32 {
	return m.word32(filtersAt + filter*filterSize + 4*i)
}
