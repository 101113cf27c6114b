package binary

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// frameTable lists the ranges of code with unwind information, sorted by address. Stripping
// keeps it, so it delimits functions and their parts when there are no symbols.
type frameTable []piece

type piece struct{ low, end uint64 }

// maxFrames is the maximum size of the frame section.
const maxFrames = 64 << 20

// readFrames reads .eh_frame. It returns no ranges if the section is invalid.
func (im *Image) readFrames() (t frameTable) {
	s := im.elf.Section(".eh_frame")
	if s == nil || s.Size > maxFrames || s.Addr == 0 {
		return nil
	}
	_ = guard(im.path, func() error {
		data, err := s.Data()
		if err != nil {
			return err
		}
		entries, err := frame.Parse(data, binary.LittleEndian, 0, 8, s.Addr)
		for _, e := range entries {
			t = append(t, piece{e.Begin(), e.End()})
		}
		return err
	})
	slices.SortFunc(t, func(a, b piece) int { return cmp.Compare(a.low, b.low) })
	return t
}

// find returns the range that contains addr.
func (t frameTable) find(addr uint64) (symbol, bool) {
	i, exact := slices.BinarySearchFunc(t, addr, func(p piece, a uint64) int { return cmp.Compare(p.low, a) })
	if !exact {
		i--
	}
	if i < 0 || addr >= t[i].end {
		return symbol{}, false
	}
	return symbol{addr: t[i].low, size: t[i].end - t[i].low}, true
}
