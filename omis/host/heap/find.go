//go:build linux

package heap

import (
	"encoding/binary"
	"path"
	"strings"

	"mirador/omis/host/proc"
)

// memory is a process whose memory is read.
type memory int

// at reads memory. It reports whether all of it could be read.
func (m memory) at(addr uint64, buf []byte) bool {
	_, err := proc.ReadMemory(int(m), addr, buf)
	return err == nil
}

// tables says where the allocator of a process keeps its tables.
type tables struct {
	main   uint64 // address of main_arena
	head   uint64 // length of the arena before its bins
	mapped uint64 // address of the bytes that are mapped separately (mp_.mmapped_mem)
}

// mostData limits the writable data of a module that is searched.
const mostData = 4 << 20

// find finds the tables of a process, or returns nil. The libraries of distributions have no
// symbols for them, but main_arena is easy to recognise: most of its bins are empty, and an
// empty bin points to itself.
func find(pid int) *tables {
	maps, err := proc.Maps(pid)
	if err != nil || replaced(maps) {
		return nil
	}
	m := memory(pid)
	for _, data := range candidates(maps) {
		buf := make([]byte, min(data.End-data.Start, mostData))
		if !m.at(data.Start, buf) {
			continue
		}
		if t := m.search(buf, data.Start, brk(maps)); t != nil {
			return t
		}
	}
	return nil
}

// brk returns the beginning of the memory that brk(2) provides, 0 if there is none.
func brk(maps proc.Mappings) uint64 {
	for i := range maps {
		if maps[i].Path == "[heap]" {
			return maps[i].Start
		}
	}
	return 0
}

// candidates returns the writable data of the C library and of the program, which may be
// linked statically: mappings of the files, together with the adjacent anonymous ones.
func candidates(maps proc.Mappings) (found []proc.Mapping) {
	first := "" // of the mapped files: the program
	for i := range maps {
		m := maps[i]
		if m.Inode != 0 && first == "" {
			first = m.Path
		}
		main := m.Path == first
		if !m.Write || !m.Private || m.Inode == 0 || !main && !strings.HasPrefix(path.Base(m.Path), "libc") {
			continue
		}
		for _, next := range maps[i+1:] {
			if next.Start != m.End || !next.Write || next.Path != "" {
				break
			}
			m.End = next.End
		}
		found = append(found, m)
	}
	return found
}

// Layout of an arena (struct malloc_state) from its bins on, and of bins. Each bin has the
// addresses of its first and last chunk; 16 less than the address of a bin is used as the
// address of a chunk.
const (
	bins     = 127
	binSize  = 16
	afterMap = bins*binSize + 16 // bins and binmap
	// Behind the bins: next, next_free, attached_threads, system_mem.
	systemAt  = afterMap + 24
	arenaTail = systemAt + 8
	topBefore = 16 // top and last_remainder are before the bins
)

// heads are the lengths of an arena before its bins: mutex, flags, have_fastchunks (since
// glibc 2.27), ten fast bins, top and last_remainder.
var heads = []uint64{112, 104}

// search finds the tables in data that begins at an address.
func (m memory) search(data []byte, start, brk uint64) *tables {
	size := uint64(len(data))
	if size < arenaTail {
		return nil
	}
	mapped := searchMapped(data, start, brk)
	if mapped == 0 {
		return nil
	}
	for at := uint64(0); at+arenaTail <= size; at += 8 {
		if !looksEmpty(data[at:], start+at) {
			continue
		}
		for _, head := range heads {
			t := &tables{main: start + at - head, head: head, mapped: mapped}
			if at >= head && t.areRing(m) {
				return t
			}
		}
	}
	return nil
}

// areRing reports whether the arenas are linked in a circle, as they are in every process.
func (t *tables) areRing(m memory) bool {
	var next [8]byte
	arena := t.main
	for range mostArenas {
		if !m.at(arena+t.head+afterMap, next[:]) {
			return false
		}
		if arena = binary.LittleEndian.Uint64(next[:]); arena == t.main {
			return true
		}
	}
	return false
}

// looksEmpty reports whether the bins at an address look like the bins of an arena: at least half
// of them are empty, and so are the last bins, which are for the largest chunks.
func looksEmpty(data []byte, addr uint64) bool {
	n := 0
	for bin := bins - 1; bin >= 0; bin-- {
		at := bin * binSize
		self := addr + uint64(at) - binSize
		if binary.LittleEndian.Uint64(data[at:]) == self && binary.LittleEndian.Uint64(data[at+8:]) == self {
			n++
		}
		if n == 0 {
			return false
		}
	}
	return n > bins/2
}

// searchMapped finds mp_.mmapped_mem. Behind it are max_mmapped_mem and sbrk_base, the address
// where the heap begins; before it is n_mmaps_max, of which programs rarely change the
// default. It returns 0 if there is none.
func searchMapped(data []byte, start, brk uint64) uint64 {
	const (
		behind = 16 // from mmapped_mem to sbrk_base
		before = 16 // from n_mmaps_max to mmapped_mem since glibc 2.35; 12 in earlier ones
		limit  = 65536
		early  = 1 << 16 // bytes that a statically linked program may take from brk before the allocator does
	)
	for at := before; at+behind+8 <= len(data); at += 8 {
		base := binary.LittleEndian.Uint64(data[at+behind:])
		if base != 0 && (base < brk || base >= brk+early) {
			continue
		}
		if n := binary.LittleEndian.Uint32; n(data[at-before:]) != limit && n(data[at-before+4:]) != limit {
			continue
		}
		now, most := binary.LittleEndian.Uint64(data[at:]), binary.LittleEndian.Uint64(data[at+8:])
		if now <= most && now%pageSize == 0 && most%pageSize == 0 {
			return start + uint64(at)
		}
	}
	return 0
}

const pageSize = 4096
