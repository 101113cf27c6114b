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

// marker is a note about a static probe.
type marker struct {
	provider, name string
	address        uint64
	semaphore      bool // the program executes it only while a counter in its memory is not 0
}

// eachMarker calls a function for the notes about static probes. A hostile file may have any number and any addresses.
func (im *Image) eachMarker(do func(m marker)) {
	s := im.elf.Section(markerSection)
	if s == nil || im.elf.Class != elf.ELFCLASS64 {
		return
	}
	b, err := im.whole.bytes(s)
	if err != nil {
		return
	}
	base := im.elf.Section(markerBase)
	left := mostMarkers
	eachNote(b, 4, func(owner string, kind uint32, desc []byte) {
		if owner != markerOwner || kind != markerNote || len(desc) < 3*8 || left == 0 {
			return
		}
		left--
		address := binary.LittleEndian.Uint64(desc)
		if base != nil {
			address += base.Addr - binary.LittleEndian.Uint64(desc[8:])
		}
		if texts := bytes.SplitN(desc[3*8:], []byte{0}, 3); len(texts) == 3 {
			do(marker{printable(string(texts[0])), printable(string(texts[1])), address, binary.LittleEndian.Uint64(desc[16:]) != 0})
		}
	})
}

// markers returns the markers of the program in the order of their names, without those of woven regions.
func (im *Image) markers() []sir.Region {
	found := make(map[string]*sir.Region)
	im.eachMarker(func(m marker) {
		if m.provider == wovenProvider || !im.isCode(m.address) {
			return
		}
		name := m.provider + ":" + m.name
		r := found[name]
		if r == nil {
			r = &sir.Region{ID: printable(im.name) + ":" + name, Name: name, Symbol: name, Kind: sir.Marker, Code: &sir.Code{}}
			found[name] = r
		}
		if m.semaphore {
			r.Code.Uncounted = "the program executes this marker only while a counter in its memory says that a tool wants it, which this monitor does not change"
			r.Code.Untimed = r.Code.Uncounted
		}
		r.Code.Entries = append(r.Code.Entries, m.address)
	})
	var all []sir.Region
	for _, r := range found {
		r.Code.Entries = ascending(r.Code.Entries)
		r.Entry, r.Code.Exits = r.Code.Entries[0], r.Code.Entries
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b sir.Region) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// ascending orders addresses, each once.
func ascending(list []uint64) []uint64 {
	slices.Sort(list)
	return slices.Compact(list)
}

// isCode reports whether the file has code at an address.
func (im *Image) isCode(addr uint64) bool {
	return slices.ContainsFunc(im.elf.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz
	})
}
