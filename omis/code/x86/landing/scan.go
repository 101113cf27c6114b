package landing

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// segment is a part of a module in its file.
type segment struct {
	addr  uint64 // as linked
	bytes []byte
}

func (s segment) contains(addr uint64) bool { return addr-s.addr < uint64(len(s.bytes)) }

// scan is the state of examining a module.
type scan struct {
	code     segment
	all      []segment
	absolute bool         // the module has a fixed address, so code may contain absolute addresses
	drop     func([]byte) // what was examined needs no memory any more

	found  *places
	tables []uint64 // addresses that instructions certainly take, with jump tables
	bases  []uint64 // others that they may take, where there may be tables
}

// piece is how much code is examined until its memory is released.
const piece = 16 << 20

// find adds all places that control may reach and that are in the range.
func (s *scan) find(found *places) error {
	s.found = found
	if err := s.together(); err != nil {
		return err
	}
	s.relativeTables()
	for _, segment := range s.all {
		s.pointers(segment)
	}
	return nil
}

// together examines the instructions on all processors.
func (s *scan) together() error {
	var next atomic.Int64
	workers := slices.Repeat([]scan{*s}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(workers))
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			errs[i] = readable(func() error {
				for at := next.Add(piece) - piece; at < int64(len(s.code.bytes)); at = next.Add(piece) - piece {
					workers[i].examine(int(at), min(int(at)+piece, len(s.code.bytes)))
				}
				return nil
			})
		})
	}
	group.Wait()
	for _, w := range workers {
		s.bases, s.tables = append(s.bases, w.bases...), append(s.tables, w.tables...)
	}
	return errors.Join(errs...)
}

// examine examines code from one offset to another.
func (s *scan) examine(from, upTo int) {
	code := s.code.bytes[from:upTo]
	_ = unix.Madvise(code, unix.MADV_POPULATE_READ) // faster than a fault for every few pages
	s.instructions(from, upTo)
	if s.absolute {
		s.immediates(from, upTo)
	}
	s.drop(code)
}

// land adds an address if it is in the code.
func (s *scan) land(addr uint64) { s.found.land(addr - s.code.addr) }

// Opcodes of instructions with a displacement from the next instruction.
const (
	call     = 0xe8
	jump     = 0xe9
	extended = 0x0f // 0f 80 to 0f 8f: conditional jumps
	lea      = 0x8d
)

// opens has the opcodes. Most bytes are none: to ask a table first takes a fifth of the time of a switch, whose branches
// the processor cannot predict.
var opens = [256]bool{call: true, jump: true, extended: true, lea: true}

// instructions regards every sequence of bytes that could be a branch or take an address as one, from one offset in
// the code to another.
func (s *scan) instructions(from, upTo int) {
	code := s.code.bytes
	for i := from; i < min(upTo, len(code)-4); i++ {
		b := code[i]
		if !opens[b] {
			continue
		}
		next := code[i+1]
		switch {
		case b == call:
			to := displaced(code, i+1)
			s.found.land(to)
			s.found.call(to)
		case b == jump:
			s.found.land(displaced(code, i+1))
		case b == extended && next&0xf0 == 0x80 && i+6 <= len(code):
			s.found.land(displaced(code, i+2))
		case b == lea && next&0xc7 == 0x05 && i+6 <= len(code):
			s.take(s.code.addr+displaced(code, i+2), i > 0 && code[i-1]&0xfb == wide)
		}
	}
}

// immediates regards every four bytes of the code as an address in the code.
func (s *scan) immediates(from, upTo int) {
	for i := from; i < min(upTo, len(s.code.bytes)-3); i++ {
		s.land(uint64(binary.LittleEndian.Uint32(s.code.bytes[i:])))
	}
}

// displaced returns where the displacement at an offset leads, as an offset; one that is too great if it leads out of
// the code.
func displaced(code []byte, at int) uint64 {
	return uint64(at) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(code[at:]))))
}

// wide is the REX prefix for 64-bit operands, without the bit for the registers r8 to r15. Compilers use it in every
// lea that takes an address.
const wide = 0x48

// take records an address that is taken by lea: there may be a jump table, or code.
func (s *scan) take(addr uint64, certain bool) {
	s.land(addr)
	if _, ok := s.entry(addr, addr); !ok {
		return
	}
	list := &s.bases
	if certain {
		list = &s.tables
	}
	if n := len(*list); n == 0 || (*list)[n-1] != addr { // compilers take the address of a table twice
		*list = append(*list, addr)
	}
}

// relativeTables regards the data at every base as a jump table of distances from the base, as long as the entries
// lead to code. A table ends where another one certainly begins.
func (s *scan) relativeTables() {
	for _, list := range []*[]uint64{&s.tables, &s.bases} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	for _, list := range [][]uint64{s.tables, s.bases} {
		first := 0
		for i, at := range list {
			s.table(at)
			// Functions whose addresses are taken may be all over the code.
			if i+1 == len(list) || list[i+1]-list[first] >= piece {
				s.dropBetween(list[first], at+entrySize)
				first = i + 1
			}
		}
	}
}

// dropBetween drops what lies between two addresses.
func (s *scan) dropBetween(begin, end uint64) {
	for _, in := range s.all {
		from, upTo := max(begin, in.addr), min(end, in.addr+uint64(len(in.bytes)))
		if from < upTo {
			s.drop(in.bytes[from-in.addr : upTo-in.addr])
		}
	}
}

// table adds where the entries of a table lead.
func (s *scan) table(at uint64) {
	end := ^uint64(0)
	if i, _ := slices.BinarySearch(s.tables, at+1); i < len(s.tables) {
		end = s.tables[i]
	}
	for entry := at; entry < end; entry += entrySize {
		to, ok := s.entry(at, entry)
		if !ok {
			return
		}
		s.land(to)
	}
}

const entrySize = 4

// entry reads an entry of a table; ok is false if it does not lead to code.
func (s *scan) entry(table, at uint64) (to uint64, ok bool) {
	for _, in := range s.all {
		if in.contains(at) && in.contains(at+entrySize-1) {
			to = table + uint64(int64(int32(binary.LittleEndian.Uint32(in.bytes[at-in.addr:]))))
			return to, s.code.contains(to)
		}
	}
	return 0, false
}

// pointers regards all aligned words as addresses: they may be in tables, or be relocated by the dynamic linker.
func (s *scan) pointers(in segment) {
	const size = 8
	dropped := 0
	for i := int(-in.addr % size); i+size <= len(in.bytes); i += size {
		s.land(binary.LittleEndian.Uint64(in.bytes[i:]))
		if i-dropped >= piece {
			s.drop(in.bytes[dropped:i])
			dropped = i
		}
	}
	s.drop(in.bytes[dropped:])
}
