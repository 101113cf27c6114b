package safedwarf

import (
	"bytes"
	"debug/dwarf"
	"errors"
)

// value returns where an attribute of the last entry is, nil if the entry has none.
func (s *Scan) value(a dwarf.Attr) *scanValue {
	slot := slotOf(uint64(a))
	if slot == 0 {
		panic("the attribute is not among scanned") // else it would be missing in each entry
	}
	if s.has&(1<<slot) == 0 {
		return nil
	}
	return &s.values[slot-1]
}

// reader returns a reader at a value.
func (s *Scan) reader(v *scanValue) cursor { return cursor{b: s.info[v.at:]} }

// Has reports whether the last entry has an attribute.
func (s *Scan) Has(a dwarf.Attr) bool { return s.value(a) != nil }

// Int returns a constant, or an offset in another section.
func (s *Scan) Int(a dwarf.Attr) (n int64, ok bool) {
	v := s.value(a)
	if v == nil {
		return 0, false
	}
	switch c := s.reader(v); v.form {
	case 0x0b:
		return int64(c.u8()), true
	case 0x05:
		return int64(c.fixed(2)), true
	case 0x06:
		return int64(c.fixed(4)), true
	case 0x07:
		return int64(c.fixed(8)), true
	case 0x0d:
		return c.sleb(), true
	case 0x0f:
		return int64(c.uleb()), true
	case formImplicitConst:
		return v.n, true
	case 0x17, 0x1f20, 0x1f21:
		return int64(c.offset(s.u.wide)), true
	}
	return 0, false
}

// Ref returns the entry to which an attribute refers.
func (s *Scan) Ref(a dwarf.Attr) (at dwarf.Offset, ok bool) {
	v := s.value(a)
	if v == nil {
		return 0, false
	}
	c := s.reader(v)
	switch v.form {
	case 0x10:
		if s.u.version == 2 {
			return dwarf.Offset(c.fixed(uint64(s.u.address))), true
		}
		return dwarf.Offset(c.offset(s.u.wide)), true
	case 0x11:
		at = dwarf.Offset(c.u8())
	case 0x12:
		at = dwarf.Offset(c.fixed(2))
	case 0x13:
		at = dwarf.Offset(c.fixed(4))
	case 0x14:
		at = dwarf.Offset(c.fixed(8))
	case 0x15:
		at = dwarf.Offset(c.uleb())
	default:
		return 0, false
	}
	return at + s.u.header, true
}

// Flag returns a flag.
func (s *Scan) Flag(a dwarf.Attr) bool {
	v := s.value(a)
	if v == nil {
		return false
	}
	c := s.reader(v)
	return v.form == 0x19 || v.form == 0x0c && c.u8() == 1
}

// Block returns a block or an expression.
func (s *Scan) Block(a dwarf.Attr) (b []byte, ok bool) {
	v := s.value(a)
	if v == nil {
		return nil, false
	}
	c, n := s.reader(v), uint64(0)
	switch v.form {
	case 0x09, 0x18:
		n = c.uleb()
	case 0x0a:
		n = c.u8()
	case 0x03:
		n = c.fixed(2)
	case 0x04:
		n = c.fixed(4)
	case 0x1e:
		n = 16
	default:
		return nil, false
	}
	return c.take(n), true
}

// Text returns a string in the section, "" if the entry has none, or the section is damaged.
func (s *Scan) Text(a dwarf.Attr) []byte {
	v := s.value(a)
	if v == nil {
		return nil
	}
	c := s.reader(v)
	if v.form == 0x08 {
		return c.text()
	}
	section, at := ".debug_str", uint64(0)
	switch v.form {
	case 0x0e:
		at = c.offset(s.u.wide)
	case 0x1f:
		section, at = ".debug_line_str", c.offset(s.u.wide)
	case 0x1a, 0x25, 0x26, 0x27, 0x28:
		size := uint64(4)
		if s.u.wide {
			size = 8
		}
		offsets := cursor{b: s.d.sections[".debug_str_offsets"]}
		offsets.take(s.u.texts + size*s.index(v, 0x1a, 0x25))
		at = offsets.fixed(size)
	default:
		return nil
	}
	texts := s.d.sections[section]
	if at >= uint64(len(texts)) {
		return nil
	}
	if n := bytes.IndexByte(texts[at:], 0); n >= 0 {
		return texts[at : at+uint64(n)]
	}
	return nil
}

// index reads an index whose form is any, or one of the four from first on, which are of one to four bytes.
func (s *Scan) index(v *scanValue, anySize, first uint16) uint64 {
	c := s.reader(v)
	if v.form == anySize {
		return c.uleb()
	}
	return c.fixed(uint64(v.form - first + 1))
}

// Addr returns an address.
func (s *Scan) Addr(a dwarf.Attr) (addr uint64, ok bool) {
	v := s.value(a)
	if v == nil {
		return 0, false
	}
	switch c := s.reader(v); v.form {
	case 0x01:
		return c.fixed(uint64(s.u.address)), true
	case 0x1b, 0x29, 0x2a, 0x2b, 0x2c:
		return s.address(s.index(v, 0x1b, 0x29))
	}
	return 0, false
}

// address returns an address of the unit's table.
func (s *Scan) address(i uint64) (uint64, bool) {
	table, size := s.d.sections[".debug_addr"], uint64(s.u.address)
	at := s.u.addresses + i*size
	if i > uint64(len(table)) || at+size > uint64(len(table)) {
		return 0, false
	}
	c := cursor{b: table[at:]}
	return c.fixed(size), true
}

var errRanges = errors.New("a damaged list of ranges")

// Ranges returns the ranges of addresses of the last entry, appended to a list.
func (s *Scan) Ranges(list [][2]uint64) ([][2]uint64, error) {
	low, known := s.Addr(dwarf.AttrLowpc)
	if high, ok := s.Addr(dwarf.AttrHighpc); ok && known {
		list = append(list, [2]uint64{low, high})
	} else if size, ok := s.Int(dwarf.AttrHighpc); ok && known && s.value(dwarf.AttrHighpc).form != 0x17 {
		list = append(list, [2]uint64{low, low + uint64(size)})
	}
	v := s.value(dwarf.AttrRanges)
	if v == nil {
		return list, nil
	}
	at, ok := s.Int(dwarf.AttrRanges)
	if lists := s.d.sections[".debug_rnglists"]; s.u.version >= 5 && lists != nil {
		switch {
		case v.form == 0x23:
			return s.newRanges(s.listed(v), list)
		case v.form == 0x17:
			return s.newRanges(uint64(at), list)
		}
		return list, nil
	}
	if ok && s.d.sections[".debug_ranges"] != nil {
		return s.oldRanges(uint64(at), list)
	}
	return list, nil
}

// listed returns where a list of ranges is that a table refers to.
func (s *Scan) listed(v *scanValue) uint64 {
	size := uint64(4)
	if s.u.wide {
		size = 8
	}
	table, values := cursor{b: s.d.sections[".debug_rnglists"]}, s.reader(v)
	table.take(s.u.ranges + size*values.uleb())
	return s.u.ranges + table.fixed(size)
}

// oldRanges reads a list of DWARF 2 to 4.
func (s *Scan) oldRanges(at uint64, list [][2]uint64) ([][2]uint64, error) {
	section, size := s.d.sections[".debug_ranges"], uint64(s.u.address)
	if at > uint64(len(section)) || size == 0 || size > 8 {
		return nil, errRanges
	}
	c, base := cursor{b: section[at:]}, s.u.base
	for len(c.b) > 0 {
		low, high := c.fixed(size), c.fixed(size)
		switch {
		case low == 0 && high == 0:
			return list, nil
		case low == ^uint64(0)>>((8-size)*8):
			base = high
		default:
			list = append(list, [2]uint64{base + low, base + high})
		}
	}
	return list, nil
}

// newRanges reads a list of DWARF 5 (2.17.3).
func (s *Scan) newRanges(at uint64, list [][2]uint64) ([][2]uint64, error) {
	section, size := s.d.sections[".debug_rnglists"], uint64(s.u.address)
	if at > uint64(len(section)) {
		return nil, errRanges
	}
	c, base := cursor{b: section[at:]}, s.u.base
	indexed := func() uint64 {
		a, ok := s.address(c.uleb())
		c.bad = c.bad || !ok
		return a
	}
	for !c.bad {
		var low, high uint64
		switch c.u8() {
		case 0: // end_of_list
			if c.bad {
				return nil, errRanges
			}
			return list, nil
		case 1: // base_addressx
			base = indexed()
			continue
		case 2: // startx_endx
			low, high = indexed(), indexed()
		case 3: // startx_length
			low = indexed()
			high = low + c.uleb()
		case 4: // offset_pair
			low, high = base+c.uleb(), base+c.uleb()
		case 5: // base_address
			base = c.fixed(size)
			continue
		case 6: // start_end
			low, high = c.fixed(size), c.fixed(size)
		case 7: // start_length
			low = c.fixed(size)
			high = low + c.uleb()
		default:
			continue
		}
		list = append(list, [2]uint64{low, high})
	}
	return nil, errRanges
}
