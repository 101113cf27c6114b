package branch

import (
	"encoding/binary"
	"slices"
)

// Targets lists the targets of branches with an offset of four bytes, in ascending order.
type Targets []uint64

// Opcodes of direct branches.
const (
	call      = 0xe8
	jump      = 0xe9
	shortJump = 0xeb
	extended  = 0x0f // 0f 80 to 0f 8f: conditional jumps
)

// Each calls do for each branch with an offset of four bytes that leads into code, with the offsets of the branch and of
// its target.
func Each(code []byte, do func(from, to int)) {
	for i := 0; i+5 <= len(code); i++ {
		at := i + 1
		switch b := code[i]; {
		case b == call || b == jump:
		case b == extended && code[i+1]&0xf0 == 0x80 && i+6 <= len(code):
			at++
		default:
			continue
		}
		to := int64(at) + 4 + int64(int32(binary.LittleEndian.Uint32(code[at:])))
		if to >= 0 && to < int64(len(code)) {
			do(i, int(to))
		}
	}
}

// Between reports whether a target is greater than begin and less than end.
func (t Targets) Between(begin, end uint64) bool {
	i, _ := slices.BinarySearch(t, begin+1)
	return i < len(t) && t[i] < end
}

// Has reports whether an address is a target.
func (t Targets) Has(addr uint64) bool {
	_, found := slices.BinarySearch(t, addr)
	return found
}

// Reach is the greatest distance of a short branch.
const Reach = 130

// ShortBetween reports whether a short branch in code, which is at addr, has a target
// greater than begin and less than end. The code should include Reach bytes on both sides
// of them.
func ShortBetween(code []byte, addr, begin, end uint64) bool {
	for i := 0; i+2 <= len(code); i++ {
		b := code[i]
		if b != shortJump && b&0xf0 != 0x70 && b&0xfc != 0xe0 { // e0 to e3: loops, jrcxz
			continue
		}
		to := addr + uint64(i) + 2 + uint64(int64(int8(code[i+1])))
		if to > begin && to < end {
			return true
		}
	}
	return false
}
