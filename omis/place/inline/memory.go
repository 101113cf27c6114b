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

// memory is what a process shares with the monitor. The lock of the process guards it, except what threads
// of the process write.
type memory struct {
	shape
	bytes   []byte
	base    uint64 // address of the memory in the process
	adopted bool   // a former monitor has made the layout
	next    map[cellKind]cell
	free    map[cellKind][]cell
	entries numbers // of the directory
	filters numbers
	records numbers // of the ledger
	serial  uint64  // of the last record
	program numbers
	swaps   bool      // the machine swaps, so pages may be on a disk
	rooms   [][]pages // by groups and slots: what is known of the pages of a room
	kinds   []byte    // kinds of groups; the header has them for a later monitor
	used    int       // number of groups in use
	extents extents   // nil: only inUse tells what was written to
	spent   int       // of the budget
}

// numbers allocates numbers.
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

// room returns how many numbers are left.
func (n *numbers) room() int { return n.most - n.next + len(n.free) }

func (n *numbers) give(number int) { n.free = append(n.free, number) }

// cell is where rows of a store are.
type cell struct {
	entry        int // of the directory
	kind         cellKind
	group, index int
}

var errNoRoom = errors.New("the memory that is shared with the process has room for no more counters and timers")

// newMemory makes a layout in memory that is all zero, or opens the layout that is there.
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
		m.adopted = true
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

// distance returns the distance of a cell's row from the thread's slot.
func (m *memory) distance(c cell) uint64 {
	return uint64(c.group*m.slots)<<roomShift + uint64(c.index*c.kind.size())
}

// rowAt returns the offset of the row of a slot in a cell.
func (m *memory) rowAt(slot int, c cell) int { return m.slotAt(slot) + int(m.distance(c)) }

func entryAt(entry int) int { return directoryAt + entry*entrySize }

func (m *memory) lost(c cell) *atomic.Uint64 { return m.word(entryAt(c.entry) + entryLost) }

// take reserves a cell for a store with a key. Its rows are zero.
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
	m.forgetGoroutines(c) // intervals of a timer that had the entry before
	name := nameOf(key)
	copy(b[entryKey:], name[:])
	m.word32(entryAt(c.entry) + entryKind).Store(uint32(kind)) // written last, which completes the entry
	return c, nil
}

// resume finds out what is free, given the cells of a former monitor.
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

// nameOf returns what the directory has for a key: the key itself if there is room, otherwise a digest.
func nameOf(key string) (name [maxKey]byte) {
	if len(key) < maxKey {
		copy(name[:], key)
		return name
	}
	digest := sha256.Sum256([]byte(key))
	copy(name[copy(name[:], key[:maxKey-len(digest)]):], digest[:])
	return name
}

// unused returns a cell that was never used.
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

// isFree reports whether n consecutive groups have no cells.
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

// pages is what is known of the pages of a room, with a bit for each.
type pages struct {
	used  uint16 // known to be in use
	asked bool   // the kernel was asked; the answer is still valid for pages that only the monitor writes
}

// inUse reports whether a page of a room was ever written to. Reading a page that was not would make the
// kernel allocate it.
func (m *memory) inUse(at int) bool {
	if m.swaps {
		return true // a page that is not in memory may be on a disk
	}
	known, page := m.room(at), pageOf(at)
	return known.used&page != 0 || m.ask(at, known)&page != 0
}

// wasReset is inUse for pages that only the monitor writes (see forgetSums), so it asks the kernel only
// once.
func (m *memory) wasReset(at int) bool {
	if known := m.room(at); known.asked && !m.swaps {
		return known.used&pageOf(at) != 0
	}
	return m.inUse(at)
}

// ask asks the kernel which pages of a room are in use.
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

// resident asks the kernel which pages are in memory. It returns false if the kernel does not answer.
func (m *memory) resident(begin int, in []byte) bool {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m.bytes[begin])), uintptr(len(in)*pageSize), uintptr(unsafe.Pointer(&in[0])))
	return errno == 0
}

func pageOf(at int) uint16 { return 1 << (at % roomSize / pageSize) }

// room returns what is known of the pages of the room at an offset.
func (m *memory) room(at int) *pages {
	room := (at - m.groupsAt()) >> roomShift
	group := &m.rooms[room/m.slots]
	if *group == nil {
		*group = make([]pages, m.slots)
	}
	return &(*group)[room%m.slots]
}

// forget clears a room, and frees its pages.
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

// freeSlot clears all rooms of a slot whose thread has ended, and frees the slot.
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

// filterWord is the number of the i-th thread of a filter.
func (m *memory) filterWord(filter, i int) *atomic.Uint32 {
	return m.word32(filtersAt + filter*filterSize + 4*i)
}
