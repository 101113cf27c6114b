package landing

import (
	"encoding/binary"
	"slices"

	"mirador/omis/linux/branch"
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
}

// find returns all places control may come to, in ascending order.
func (s *scan) find() branch.Targets {
	s.landings = branch.Find(s.code.bytes, 0)
	for _, table := range s.references() {
		s.relativeTable(table)
	}
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

// references notes addresses of code that are taken by lea with an offset from the
// instruction, and returns the others that are taken so: tables may be there.
func (s *scan) references() []uint64 {
	const lea, ripRelative, length = 0x8d, 0x05, 6
	var others []uint64
	code := s.code.bytes
	for i := 0; i+length <= len(code); i++ {
		if code[i] != lea || code[i+1]&0xc7 != ripRelative {
			continue
		}
		next := s.code.addr + uint64(i) + length
		to := next + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+2:]))))
		others = append(others, to) // a table may stand in the code, too
		if s.land(to) {
			s.taken = append(s.taken, reference{uint64(i), to - s.code.addr})
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

// relativeTable takes what stands at an address for a jump table of distances from
// itself, as far as they lead to code.
func (s *scan) relativeTable(at uint64) {
	const entry = 4
	i := slices.IndexFunc(s.all, func(s segment) bool { return s.contains(at) })
	if i < 0 {
		return
	}
	b := s.all[i].bytes[at-s.all[i].addr:]
	for ; len(b) >= entry; b = b[entry:] {
		if !s.land(at + uint64(int64(int32(binary.LittleEndian.Uint32(b))))) {
			return
		}
	}
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
