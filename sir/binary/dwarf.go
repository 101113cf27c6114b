package binary

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"io"
	"slices"
)

var debugSections = []string{".debug_abbrev", ".debug_info", ".debug_str", ".debug_line", ".debug_ranges",
	".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"}

func loadLines(f *elfFile) (*lineData, error) {
	raw := map[string][]byte{}
	for _, name := range debugSections {
		if s := f.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			// A compressed section may contain more than its header says.
			b, err := io.ReadAll(io.LimitReader(s.Open(), int64(min(s.Size, maxDebug))))
			if err != nil {
				return nil, err
			}
			raw[name] = b
		}
	}
	if err := checkAbbreviations(f.path, raw[".debug_info"], raw[".debug_abbrev"]); err != nil {
		return nil, err
	}
	d, err := dwarf.New(raw[".debug_abbrev"], nil, nil, raw[".debug_info"], raw[".debug_line"], nil, raw[".debug_ranges"], raw[".debug_str"])
	if err != nil {
		return nil, err
	}
	for _, name := range debugSections[5:] {
		if err := d.AddSection(name, raw[name]); err != nil {
			return nil, err
		}
	}
	data := &lineData{dwarf: d}
	data.readUnits(raw[".debug_info"])
	return data, nil
}

// readUnits finds the compile units and the address ranges of each. It reads only the headers:
// stepping over a unit's entries would require reading them all.
func (d *lineData) readUnits(info []byte) {
	r := d.dwarf.Reader()
	for u := range unitHeaders(info) {
		if len(d.units) == maxUnits || len(d.spans) > maxSpans {
			break
		}
		r.Seek(dwarf.Offset(u.first))
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != dwarf.TagCompileUnit {
			continue
		}
		table, ok := e.Val(dwarf.AttrStmtList).(int64)
		if !ok {
			continue
		}
		d.units = append(d.units, compileUnit{e, table, dwarf.Offset(u.first), dwarf.Offset(u.end)})
		ranges, err := d.dwarf.Ranges(e)
		if err != nil {
			continue
		}
		for _, s := range ranges {
			if s[0] < s[1] && s[0] != 0 {
				d.spans = append(d.spans, span{s[0], s[1], len(d.units) - 1})
			}
		}
	}
	slices.SortFunc(d.spans, func(a, b span) int { return cmp.Compare(a.low, b.low) })
}

// unitHeader has the offsets of the abbreviations and the entries of a unit in .debug_info.
type unitHeader struct{ abbrev, first, end uint64 }

func unitHeaders(info []byte) func(func(unitHeader) bool) {
	return func(yield func(unitHeader) bool) {
		const shortest = 12 // bytes read before the length is checked
		for at := uint64(0); at+shortest <= uint64(len(info)); {
			length, width, body := uint64(le32(info[at:])), uint64(4), at+4
			if length == 0xffffffff {
				length, width, body = le64(info[at+4:]), 8, at+12
			}
			end := body + length
			if length > uint64(len(info)) || end > uint64(len(info)) || length < 2+width+1 {
				return
			}
			u := unitHeader{first: body + 2 + width + 1, end: end}
			abbrev := body + 2
			if version := le16(info[body:]); version >= 5 {
				if length < 2+1+1+width {
					return
				}
				abbrev = body + 4
				u.first = abbrev + width
				if kind := info[body+2]; kind == 4 || kind == 5 { // skeleton or split unit: an id follows
					u.first += 8
				}
			}
			u.abbrev = uint64(le32(info[abbrev:]))
			if width == 8 {
				u.abbrev = le64(info[abbrev:])
			}
			if !yield(u) {
				return
			}
			at = end
		}
	}
}

// checkAbbreviations refuses tables that overlap. debug/dwarf reads the table of every unit
// into memory, so overlapping tables would let a small file use memory quadratic in its size.
func checkAbbreviations(path string, info, abbrev []byte) error {
	seen := map[uint64]bool{}
	budget := 2*len(abbrev) + 64
	for u := range unitHeaders(info) {
		if u.abbrev >= uint64(len(abbrev)) || seen[u.abbrev] {
			continue
		}
		seen[u.abbrev] = true
		if budget -= abbreviationTable(abbrev[u.abbrev:], budget); budget <= 0 {
			return &FormatError{path, "tables of abbreviations overlap"}
		}
	}
	return nil
}

// abbreviationTable returns the length of the table at the start of b, at most limit.
func abbreviationTable(b []byte, limit int) int {
	at := 0
	number := func() (n uint64) {
		for shift := 0; at < len(b); shift += 7 {
			c := b[at]
			at++
			n |= uint64(c&0x7f) << min(shift, 63)
			if c < 0x80 {
				break
			}
		}
		return n
	}
	for at < len(b) && at < limit && number() != 0 {
		number() // tag
		at++     // children
		for at < len(b) && at < limit {
			attribute, form := number(), number()
			if form == 0x21 { // DW_FORM_implicit_const holds a value here
				number()
			}
			if attribute == 0 && form == 0 {
				break
			}
		}
	}
	return min(at, limit)
}
