package safedwarf

import (
	"context"
	"debug/dwarf"
	"errors"
	"slices"
	"sync"
)

var errEntry = errors.New("a damaged entry in the debug information")

// scanUnit is what the entries of a unit refer to.
type scanUnit struct {
	Unit
	table                    *entryTable
	addresses, texts, ranges uint64 // where its parts of other sections begin
	base                     uint64 // of its lists of ranges
}

// scans is what scans have read of all units.
type scans struct {
	list   sync.Once
	all    []Unit
	units  sync.Map // *scanUnit by their first entries
	tables sync.Map // *entryTable by their keys
}

// allUnits returns the units in the order of their offsets.
func (d *Data) allUnits() []Unit {
	d.scans.list.Do(func() { d.scans.all = slices.Collect(d.Units()) })
	return d.scans.all
}

// scanUnit returns a unit, which is read once.
func (d *Data) scanUnit(ctx context.Context, u Unit) (*scanUnit, error) {
	if known, ok := d.scans.units.Load(u.First); ok {
		return known.(*scanUnit), nil
	}
	e, err := d.Entry(ctx, u.First)
	if err != nil {
		return nil, err
	}
	made := &scanUnit{Unit: u}
	number := func(a dwarf.Attr) uint64 {
		n, _ := e.Val(a).(int64)
		return uint64(n)
	}
	if u.version >= 5 {
		made.addresses, made.texts, made.ranges = number(dwarf.AttrAddrBase), number(dwarf.AttrStrOffsetsBase), number(dwarf.AttrRnglistsBase)
	}
	var ok bool
	if made.base, ok = e.Val(dwarf.AttrEntrypc).(uint64); !ok {
		made.base, _ = e.Val(dwarf.AttrLowpc).(uint64)
	}
	key := tableKey{u.abbrev, u.version, u.address, u.wide}
	table, ok := d.scans.tables.Load(key)
	if !ok {
		table, _ = d.scans.tables.LoadOrStore(key, made.readTable(d.sections[".debug_abbrev"]))
	}
	made.table = table.(*entryTable)
	d.scans.units.Store(u.First, made)
	return made, nil
}

// tableKey identifies a table of abbreviations, and what the sizes of forms depend on.
type tableKey struct {
	at               uint64
	version, address uint8
	wide             bool
}

// entryTable is a table of abbreviations. Most are numbered from 1.
type entryTable struct {
	list []abbreviation
	odd  map[uint64]*abbreviation // with other numbers than their places in the list
}

type abbreviation struct {
	tag      dwarf.Tag
	children bool
	steps    []scanStep
}

// scanStep is the step over an attribute, or over several of fixed sizes that are not scanned.
type scanStep struct {
	form uint16
	slot uint8 // see slots
	skip int   // bytes, -1 if the form does not tell it
	n    int64 // of an implicit constant
}

func (t *entryTable) find(code uint64) *abbreviation {
	if odd := t.odd[code]; odd != nil {
		return odd
	}
	if code-1 < uint64(len(t.list)) && t.odd == nil {
		return &t.list[code-1]
	}
	return nil
}

// readTable reads the table of abbreviations of a unit.
func (u *scanUnit) readTable(section []byte) *entryTable {
	t := &entryTable{}
	var codes []uint64
	c := cursor{b: section[min(u.abbrev, uint64(len(section))):]}
	for len(c.b) > 0 {
		code := c.uleb()
		if code == 0 {
			break
		}
		a := abbreviation{tag: dwarf.Tag(c.uleb()), children: c.u8() == 1}
		for len(c.b) > 0 {
			attribute, form := c.uleb(), c.uleb()
			n := int64(0)
			if form == formImplicitConst {
				n = c.sleb()
			}
			if attribute == 0 && form == 0 {
				break
			}
			a.add(scanStep{form: uint16(min(form, 0xffff)), slot: slotOf(attribute), n: n}, u.fixedSize(uint16(min(form, 0xffff))))
		}
		a.steps = slices.Clip(a.steps)
		t.list, codes = append(t.list, a), append(codes, code)
	}
	inOrder := true
	for i, code := range codes {
		inOrder = inOrder && code == uint64(i+1)
	}
	if !inOrder {
		t.odd = make(map[uint64]*abbreviation, len(codes))
		for i, code := range codes {
			t.odd[code] = &t.list[i]
		}
	}
	return t
}

// add adds a step, of a size. Steps over attributes that are not scanned are joined.
func (a *abbreviation) add(s scanStep, size int) {
	s.skip = size
	if last := len(a.steps) - 1; last >= 0 && size >= 0 && s.slot == 0 && a.steps[last].slot == 0 && a.steps[last].skip >= 0 && a.steps[last].form != formIndirect {
		a.steps[last].skip += size
		return
	}
	a.steps = append(a.steps, s)
}

const formIndirect = 0x16

// fixedSize returns the size of the values of a form, -1 if they differ.
func (u *scanUnit) fixedSize(form uint16) int {
	offset := 4
	if u.wide {
		offset = 8
	}
	switch form {
	case 0x19, formImplicitConst: // flag_present
		return 0
	case 0x0b, 0x0c, 0x11, 0x25, 0x29: // data1, flag, ref1, strx1, addrx1
		return 1
	case 0x05, 0x12, 0x26, 0x2a: // data2, ref2, strx2, addrx2
		return 2
	case 0x27, 0x2b: // strx3, addrx3
		return 3
	case 0x06, 0x13, 0x1c, 0x28, 0x2c: // data4, ref4, ref_sup4, strx4, addrx4
		return 4
	case 0x07, 0x14, 0x20, 0x24: // data8, ref8, ref_sig8, ref_sup8
		return 8
	case 0x1e: // data16
		return 16
	case 0x01: // addr
		return int(u.address)
	case 0x10: // ref_addr
		if u.version == 2 {
			return int(u.address)
		}
		return offset
	case 0x0e, 0x17, 0x1d, 0x1f, 0x1f20, 0x1f21: // strp, sec_offset, strp_sup, line_strp, GNU_ref_alt, GNU_strp_alt
		return offset
	}
	return -1
}
