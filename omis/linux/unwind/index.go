//go:build linux && amd64

package unwind

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
	"sync"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// index finds entries of .eh_frame by the table of .eh_frame_hdr, which linkers write for the unwinders of programs. A
// program may have hundreds of thousands of entries, but few of them are ever asked for.
type index struct {
	addr, tables uint64 // of .eh_frame_hdr and .eh_frame
	rows         []byte // beginnings of functions and their entries, by distances from addr
	data         []byte // of .eh_frame

	mu    sync.Mutex
	known map[int]*frame.FrameDescriptionEntry // by their rows; nil: malformed
}

const (
	hdrSize = 12
	rowSize = 8
)

// readIndex reads the index of a file, nil if it has none of the usual form.
func readIndex(file *elf.File) *index {
	header, rows := content(file, ".eh_frame_hdr")
	section, data := content(file, ".eh_frame")
	// The version, and the encodings of the address of .eh_frame, of the number of rows and of the rows.
	if len(rows) < hdrSize || [4]byte(rows) != [4]byte{1, 0x1b, 0x03, 0x3b} || data == nil {
		return nil
	}
	x := &index{addr: header.Addr, tables: section.Addr, data: data, known: make(map[int]*frame.FrameDescriptionEntry)}
	if x.rows = rows[hdrSize:]; uint64(len(x.rows)) != uint64(binary.LittleEndian.Uint32(rows[8:]))*rowSize || !sort.IsSorted(x) {
		return nil
	}
	return x
}

// Len, Less and Swap implement sort.Interface, to see whether the rows are sorted.
func (x *index) Len() int           { return len(x.rows) / rowSize }
func (x *index) Less(i, j int) bool { return x.begin(i) < x.begin(j) }
func (x *index) Swap(int, int)      {}

func (x *index) begin(row int) uint64 { return x.displaced(row * rowSize) }

// displaced returns the address of which the rows contain the distance.
func (x *index) displaced(at int) uint64 {
	return x.addr + uint64(int64(int32(binary.LittleEndian.Uint32(x.rows[at:]))))
}

// find returns the entry of the function that contains an address, nil if there is none.
func (x *index) find(pc uint64) *frame.FrameDescriptionEntry {
	row := sort.Search(x.Len(), func(i int) bool { return x.begin(i) > pc }) - 1
	if row < 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	entry, ok := x.known[row]
	if !ok {
		entry = x.parse(x.displaced(row*rowSize + rowSize/2))
		x.known[row] = entry
	}
	if entry == nil || !entry.Cover(pc) {
		return nil
	}
	return entry
}

// parse reads the entry at an address, nil if it is malformed. The parser gets a table of two entries: what the entry
// has in common with others, and itself at its own address.
func (x *index) parse(at uint64) (entry *frame.FrameDescriptionEntry) {
	defer func() {
		if recover() != nil {
			entry = nil
		}
	}()
	const field = 4 // before the rest of an entry: its length, then the distance back to the common part
	whole := func(at uint64) []byte {
		return x.data[at : at+field+uint64(binary.LittleEndian.Uint32(x.data[at:]))]
	}
	own := whole(at - x.tables)
	common := whole(at - x.tables + field - uint64(binary.LittleEndian.Uint32(own[field:])))
	table := slices.Concat(common, own)
	binary.LittleEndian.PutUint32(table[len(common)+field:], uint32(len(common)+field))
	list, err := frame.Parse(table, binary.LittleEndian, 0, pointerSize, at-uint64(len(common)))
	if err != nil || len(list) != 1 {
		return nil
	}
	return list[0]
}
