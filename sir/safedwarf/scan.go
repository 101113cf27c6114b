package safedwarf

import (
	"bytes"
	"context"
	"debug/dwarf"
	"encoding/binary"
	"sort"
)

// Scan reads entries without making values of their attributes: it notes where the attributes in scanned are, and steps
// over the others by the tables of abbreviations. A dwarf.Reader allocates a value for each attribute of each entry, which
// takes twenty times as long.
type Scan struct {
	Offset   dwarf.Offset // of the last entry
	Tag      dwarf.Tag    // 0 at the end of a list of children
	Children bool
	ctx      context.Context
	d        *Data
	u        *scanUnit
	info     []byte // to the end of the unit
	at       int
	read     uint
	has      uint32 // the attributes that the last entry has, by their slots
	values   [len(scanned)]scanValue
}

type scanValue struct {
	form uint16
	at   int   // in the section
	n    int64 // of an implicit constant
}

// scanned are the attributes whose values can be read.
var scanned = [...]dwarf.Attr{
	dwarf.AttrSibling, dwarf.AttrName, dwarf.AttrLinkageName, dwarf.AttrLowpc, dwarf.AttrHighpc, dwarf.AttrRanges, dwarf.AttrEntrypc, dwarf.AttrLocation,
	dwarf.AttrAbstractOrigin, dwarf.AttrSpecification, dwarf.AttrCallFile, dwarf.AttrCallLine, dwarf.AttrCallColumn,
	dwarf.AttrDeclFile, dwarf.AttrDeclLine, dwarf.AttrDeclColumn, dwarf.AttrExternal, dwarf.AttrInline,
	dwarf.AttrCallAllCalls, AttrGNUAllCalls,
}

// AttrGNUAllCalls is DW_AT_GNU_all_call_sites, of DWARF 4.
const AttrGNUAllCalls dwarf.Attr = 0x2117

// slots has the numbers of scanned, counted from 1.
var slots = func() (of [AttrGNUAllCalls + 1]uint8) {
	for i, a := range scanned {
		of[a] = uint8(i + 1)
	}
	return of
}()

func slotOf(attribute uint64) uint8 {
	if attribute < uint64(len(slots)) {
		return slots[attribute]
	}
	return 0
}

// Scan returns a reader of the entries of a unit, which works until ctx ends.
func (d *Data) Scan(ctx context.Context, u Unit) (*Scan, error) {
	known, err := d.scanUnit(ctx, u)
	if err != nil {
		return nil, err
	}
	return &Scan{ctx: ctx, d: d, u: known, info: d.sections[".debug_info"][:u.End], at: int(u.First)}, nil
}

// Seek continues at an entry, perhaps of another unit.
func (s *Scan) Seek(at dwarf.Offset) error {
	if at < s.u.First || at >= s.u.End {
		units := s.d.allUnits()
		i := sort.Search(len(units), func(i int) bool { return units[i].End > at })
		if i == len(units) || at < units[i].First {
			return errNoEntry
		}
		u, err := s.d.scanUnit(s.ctx, units[i])
		if err != nil {
			return err
		}
		s.u, s.info = u, s.d.sections[".debug_info"][:u.End]
	}
	s.at = int(at)
	return nil
}

// Next reads the next entry. It returns false at the end of the unit.
func (s *Scan) Next() (bool, error) {
	const often = 1 << 10 // entries between checks
	if s.read++; s.read%often == 1 {
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
	}
	if s.at >= len(s.info) {
		return false, nil
	}
	s.Offset, s.has = dwarf.Offset(s.at), 0
	code := s.uleb()
	if code == 0 {
		s.Tag, s.Children = 0, false
		return true, nil
	}
	a := s.u.table.find(code)
	if a == nil {
		return false, errEntry
	}
	s.Tag, s.Children = a.tag, a.children
	for i := range a.steps {
		if !s.step(&a.steps[i]) {
			return false, errEntry
		}
	}
	return true, nil
}

// step moves behind a value, and notes where it is.
func (s *Scan) step(p *scanStep) bool {
	form := p.form
	if form == formIndirect {
		form = uint16(s.uleb())
		if form == formIndirect || form == formImplicitConst {
			return false
		}
	}
	if p.slot > 0 && s.has&(1<<p.slot) == 0 {
		s.has |= 1 << p.slot
		s.values[p.slot-1] = scanValue{form, s.at, p.n}
	}
	n := p.skip
	if p.form == formIndirect {
		n = s.u.fixedSize(form)
	}
	if n < 0 {
		n = s.variable(form)
	}
	if n < 0 || n > len(s.info)-s.at {
		return false
	}
	s.at += n
	return true
}

// variable returns the size of a value whose form does not tell it, -1 if it is unknown.
func (s *Scan) variable(form uint16) int {
	switch form {
	case 0x0d, 0x0f, 0x15, 0x1a, 0x1b, 0x22, 0x23: // sdata, udata, ref_udata, strx, addrx, loclistx, rnglistx
		s.uleb()
		return 0
	case 0x08: // string
		return bytes.IndexByte(s.info[s.at:], 0) + 1
	case 0x09, 0x18: // block, exprloc
		if n := s.uleb(); n <= uint64(len(s.info)) {
			return int(n)
		}
	case 0x0a: // block1
		return int(s.number(1))
	case 0x03: // block2
		return int(s.number(2))
	case 0x04: // block4
		return int(s.number(4))
	}
	return -1
}

func (s *Scan) uleb() (n uint64) {
	for shift := 0; s.at < len(s.info); shift += 7 {
		b := s.info[s.at]
		s.at++
		n |= uint64(b&0x7f) << min(shift, 63)
		if b < 0x80 {
			break
		}
	}
	return n
}

// number reads a number of a few bytes.
func (s *Scan) number(n int) (v uint64) {
	if n > len(s.info)-s.at {
		s.at = len(s.info)
		return 0
	}
	switch at := s.info[s.at:]; n {
	case 1:
		v = uint64(at[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(at))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(at))
	case 8:
		v = binary.LittleEndian.Uint64(at)
	default:
		for i := range n {
			v |= uint64(at[i]) << (8 * i)
		}
	}
	s.at += n
	return v
}

// SkipChildren moves behind the children of the last entry.
func (s *Scan) SkipChildren() error {
	if !s.Children || s.toSibling() {
		return nil
	}
	for depth := 1; depth > 0; {
		more, err := s.Next()
		switch {
		case err != nil || !more:
			return err
		case s.Tag == 0:
			depth--
		case s.Children && !s.toSibling():
			depth++
		}
	}
	return nil
}

func (s *Scan) toSibling() bool {
	at, ok := s.Ref(dwarf.AttrSibling)
	if ok = ok && at > s.Offset && int(at) >= s.at && at < s.u.End; ok {
		s.at = int(at)
	}
	return ok
}
