package landing

import (
	"encoding/binary"
	"slices"

	"mirador/omis/code/x86/branch"
)

// segment is a part of a module as its file has it.
type segment struct {
	addr  uint64 // as linked
	bytes []byte
}

func (s segment) contains(addr uint64) bool { return addr-s.addr < uint64(len(s.bytes)) }

// reference is an instruction that takes an address, both as distances from the
// begin of the code.
type reference struct{ at, to uint64 }

// scan goes through a module.
type scan struct {
	code     segment
	all      []segment
	absolute bool // the module is not moved: addresses may be in the code as they are
	landings []uint64
	taken    []reference
	bases    []uint64 // addresses that instructions take, or seem to
	tables   []uint64 // those of them where jump tables begin
}

// find returns all places control may come to, in ascending order.
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

// references notes the addresses that are taken by lea with an offset from the
// instruction: tables may be there, or code.
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

// wide is a prefix for operands of 64 bits, without the bit for eight more registers.
// Compilers write no lea that takes an address without one.
const wide = 0x48

// relativeTables takes what stands at addresses for jump tables of distances from
// themselves, as far as they lead to code. One that begins for certain ends another.
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

// entry reads one of a table, wherever it is; false: it leads to no code.
func (s *scan) entry(table, at uint64) (to uint64, ok bool) {
	i := slices.IndexFunc(s.all, func(s segment) bool { return s.contains(at) && s.contains(at+entrySize-1) })
	if i < 0 {
		return 0, false
	}
	to = table + uint64(int64(int32(binary.LittleEndian.Uint32(s.all[i].bytes[at-s.all[i].addr:]))))
	return to, s.code.contains(to)
}

// pointers takes all aligned words for addresses: tables of them, and what the
// dynamic linker is told to make addresses of.
func (s *scan) pointers(in segment) {
	const size = 8
	for i := int(-in.addr % size); i+size <= len(in.bytes); i += size {
		s.land(binary.LittleEndian.Uint64(in.bytes[i:]))
	}
}

// immediates takes whatever looks like one in the code for an address of it.
func (s *scan) immediates() {
	const size = 4
	for i := 0; i+size <= len(s.code.bytes); i++ {
		s.land(uint64(binary.LittleEndian.Uint32(s.code.bytes[i:])))
	}
}
