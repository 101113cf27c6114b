package landing

import (
	"encoding/binary"
	"slices"

	"mirador/omis/code/x86/branch"
)

// segment is a part of a module in its file.
type segment struct {
	addr  uint64 // as linked
	bytes []byte
}

func (s segment) contains(addr uint64) bool { return addr-s.addr < uint64(len(s.bytes)) }

// reference is an instruction that takes an address, both as offsets from the beginning
// of the code.
type reference struct{ at, to uint64 }

// scan is the state of examining a module.
type scan struct {
	code     segment
	all      []segment
	absolute bool // the module has a fixed address, so code may contain absolute addresses
	landings []uint64
	taken    []reference
	bases    []uint64 // addresses that instructions take, or may take
	tables   []uint64 // those at which jump tables certainly begin
}

// find returns all places that control may reach, in ascending order.
func (s *scan) find() branch.Targets {
	s.landings = branch.Find(s.code.bytes, 0)
	s.references()
	s.relativeTables()
	for _, segment := range s.all {
		s.pointers(segment)
	}
	if s.absolute {
		s.immediates()
	}
	slices.Sort(s.landings)
	return slices.Clip(slices.Compact(s.landings))
}

func (s *scan) land(addr uint64) bool {
	if !s.code.contains(addr) {
		return false
	}
	s.landings = append(s.landings, addr-s.code.addr)
	return true
}

// references records the addresses taken by lea with an offset from the instruction:
// there may be tables, or code.
func (s *scan) references() {
	const lea, ripRelative, length = 0x8d, 0x05, 6
	code := s.code.bytes
	for i := 0; i+length <= len(code); i++ {
		if code[i] != lea || code[i+1]&0xc7 != ripRelative {
			continue
		}
		next := s.code.addr + uint64(i) + length
		to := next + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+2:]))))
		s.bases = append(s.bases, to)
		if i > 0 && code[i-1]&0xfb == wide {
			if _, ok := s.entry(to, to); ok {
				s.tables = append(s.tables, to)
			}
		}
		if s.land(to) {
			s.taken = append(s.taken, reference{uint64(i), to - s.code.addr})
		}
	}
	slices.Sort(s.bases)
	s.bases = slices.Compact(s.bases)
	slices.Sort(s.tables)
}

// wide is the REX prefix for 64-bit operands, without the bit for the registers r8 to
// r15. Compilers use it in every lea that takes an address.
const wide = 0x48

// relativeTables regards the data at every base as a jump table of distances from the
// base, as long as the entries lead to code. A table ends where another one certainly
// begins.
func (s *scan) relativeTables() {
	for _, at := range s.bases {
		end := ^uint64(0)
		if i, _ := slices.BinarySearch(s.tables, at+1); i < len(s.tables) {
			end = s.tables[i]
		}
		for entry := at; entry < end; entry += entrySize {
			to, ok := s.entry(at, entry)
			if !ok {
				break
			}
			s.land(to)
		}
	}
}

const entrySize = 4

// entry reads an entry of a table; ok is false if it does not lead to code.
func (s *scan) entry(table, at uint64) (to uint64, ok bool) {
	i := slices.IndexFunc(s.all, func(s segment) bool { return s.contains(at) && s.contains(at+entrySize-1) })
	if i < 0 {
		return 0, false
	}
	to = table + uint64(int64(int32(binary.LittleEndian.Uint32(s.all[i].bytes[at-s.all[i].addr:]))))
	return to, s.code.contains(to)
}

// pointers regards all aligned words as addresses: they may be in tables, or be relocated
// by the dynamic linker.
func (s *scan) pointers(in segment) {
	const size = 8
	for i := int(-in.addr % size); i+size <= len(in.bytes); i += size {
		s.land(binary.LittleEndian.Uint64(in.bytes[i:]))
	}
}

// immediates regards every four bytes of the code as an address in the code.
func (s *scan) immediates() {
	const size = 4
	for i := 0; i+size <= len(s.code.bytes); i++ {
		s.land(uint64(binary.LittleEndian.Uint32(s.code.bytes[i:])))
	}
}
