package binary

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"

	"mirador/sir"
)

// Static probes are marked in the code as sys/sdt.h of SystemTap does it: an instruction nop, and a note
// with its address and a provider and a name. The compiler may copy the code, so that several notes have
// the same provider and name.
const (
	markerSection = ".note.stapsdt"
	markerBase    = ".stapsdt.base" // its address as the linker knew it is in each note; prelink may move it
	markerNote    = 3
	markerOwner   = "stapsdt\x00"
	mostMarkers   = 1 << 16
)

// markers returns the markers of the program in the order of their names.
func (im *Image) markers() []sir.Region {
	s := im.elf.Section(markerSection)
	if s == nil || im.elf.Class != elf.ELFCLASS64 {
		return nil
	}
	b, err := im.whole.bytes(s)
	if err != nil {
		return nil
	}
	var moved uint64
	base := im.elf.Section(markerBase)
	found := make(map[string]*sir.Region)
	left := mostMarkers
	eachNote(b, 4, func(owner string, kind uint32, desc []byte) {
		if owner != markerOwner || kind != markerNote || len(desc) < 3*8 || left == 0 {
			return
		}
		left--
		address := binary.LittleEndian.Uint64(desc)
		if base != nil {
			moved = base.Addr - binary.LittleEndian.Uint64(desc[8:])
		}
		texts := bytes.SplitN(desc[3*8:], []byte{0}, 3)
		if len(texts) < 3 || !im.isCode(address+moved) {
			return
		}
		name := printable(string(texts[0])) + ":" + printable(string(texts[1]))
		r := found[name]
		if r == nil {
			r = &sir.Region{ID: printable(im.base()) + ":" + name, Name: name, Symbol: name, Kind: sir.Marker, Code: &sir.Code{}}
			found[name] = r
		}
		if semaphore := binary.LittleEndian.Uint64(desc[16:]); semaphore != 0 {
			r.Code.Uncounted = "the program executes this marker only while a counter in its memory says that a tool wants it, which this monitor does not change"
			r.Code.Untimed = r.Code.Uncounted
		}
		r.Code.Entries = append(r.Code.Entries, address+moved)
	})
	var all []sir.Region
	for _, r := range found {
		slices.Sort(r.Code.Entries)
		r.Code.Entries = slices.Compact(r.Code.Entries)
		r.Entry, r.Code.Exits = r.Code.Entries[0], r.Code.Entries
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b sir.Region) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// isCode reports whether the file has code at an address.
func (im *Image) isCode(addr uint64) bool {
	return slices.ContainsFunc(im.elf.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz
	})
}
