package binary

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"io"
	"slices"
	"sort"
	"sync"

	"mirador/sir"
)

// lineTable answers which source line an address belongs to, from the line
// programs of DWARF. The line of a function is that of its first instruction:
// compilers put the function's own line there, it is right for clones too, and
// it costs a fraction of reading every entry of .debug_info.
type lineTable struct {
	memory int64
	load   func() *lineData // nil without DWARF

	mu      sync.Mutex
	decoded map[dwarf.Offset][]lineRow // line programs decoded so far
	rows    int
}

// lineData is the DWARF of an image, made at first use.
type lineData struct {
	dwarf *dwarf.Data
	units []compileUnit
	spans []span // sorted by low
}

type compileUnit struct {
	entry *dwarf.Entry
	table int64 // offset of the line program, which several units may share
}

type span struct {
	low, high uint64
	unit      int
}

type lineRow struct {
	addr uint64
	file string
	line int
	end  bool // nothing is known from here on
}

// Bounds on line data, far above what real programs have: a file may name one
// line program or one list of ranges from many units.
const (
	maxUnits    = 1 << 20
	maxSpans    = 4 << 20
	keptRows    = 1 << 20 // decoded rows kept for look-ups
	maxUnitRows = 8 << 20
)

var debugSections = []string{".debug_abbrev", ".debug_info", ".debug_str", ".debug_line", ".debug_ranges",
	".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"}

func openLines(main, debug *elfFile) *lineTable {
	t := &lineTable{decoded: map[dwarf.Offset][]lineRow{}}
	f := main
	if !main.has(".debug_line") {
		f = debug
	}
	if !f.has(".debug_line") || !f.has(".debug_info") || !f.has(".debug_abbrev") {
		return t
	}
	total := uint64(0)
	for _, name := range debugSections {
		if s := f.Section(name); s != nil {
			total += min(s.Size, maxDebug+1)
		}
	}
	if total > maxDebug {
		return t
	}
	t.memory = int64(total)
	t.load = sync.OnceValue(func() *lineData {
		var d *lineData
		// Damaged debug information costs the line numbers, not the program.
		if err := guard(f.path, func() (err error) { d, err = loadLines(f); return err }); err != nil {
			return nil
		}
		return d
	})
	return t
}

func loadLines(f *elfFile) (*lineData, error) {
	raw := map[string][]byte{}
	for _, name := range debugSections {
		if s := f.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			b, err := io.ReadAll(io.LimitReader(s.Open(), maxDebug))
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

// readUnits finds the compile units and the addresses each covers. It goes from
// header to header: stepping over a unit's entries would mean to read them all.
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
		d.units = append(d.units, compileUnit{e, table})
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

// unitHeader is where a unit of .debug_info keeps its abbreviations and its
// first entry.
type unitHeader struct{ abbrev, first uint64 }

func unitHeaders(info []byte) func(func(unitHeader) bool) {
	return func(yield func(unitHeader) bool) {
		for at := uint64(0); at+12 <= uint64(len(info)); {
			length, width, body := uint64(le32(info[at:])), uint64(4), at+4
			if length == 0xffffffff {
				length, width, body = le64(info[at+4:]), 8, at+12
			}
			end := body + length
			if length > uint64(len(info)) || end > uint64(len(info)) || length < 2+2*width+2 {
				return
			}
			u := unitHeader{first: body + 2 + width + 1}
			abbrev := body + 2
			if version := le16(info[body:]); version >= 5 {
				abbrev = body + 4
				u.first = abbrev + width
				if kind := info[body+2]; kind == 4 || kind == 5 { // skeleton, split: an id follows
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

// checkAbbreviations refuses tables that overlap. debug/dwarf reads the table of
// every unit into memory, so overlapping tables would let a small file ask for
// the square of its size.
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

// abbreviationTable is the length of the table at the start of b, no more than
// limit.
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

// locate fills in file and line of the units, which are sorted by address.
func (t *lineTable) locate(units []sir.Unit) {
	if t.load == nil {
		return
	}
	d := t.load()
	if d == nil {
		return
	}
	seen := map[int64]bool{}
	for _, u := range d.units {
		if !seen[u.table] {
			seen[u.table] = true
			// What a damaged line program says before it breaks is used.
			_ = guard("", func() error { return d.locateUnit(u, units) })
		}
	}
}

func (d *lineData) locateUnit(u compileUnit, units []sir.Unit) error {
	return d.eachSpan(u, func(from, to dwarf.LineEntry) {
		i, _ := slices.BinarySearchFunc(units, from.Address, func(u sir.Unit, a uint64) int { return cmp.Compare(u.Entry, a) })
		for ; i < len(units) && units[i].Entry < to.Address; i++ {
			if from.File != nil && units[i].File == "" {
				units[i].File, units[i].Line = printable(from.File.Name), from.Line
			}
		}
	})
}

// eachSpan runs the line program of a unit; two consecutive rows of a sequence
// delimit the addresses that the first one speaks of.
func (d *lineData) eachSpan(u compileUnit, row func(from, to dwarf.LineEntry)) error {
	r, err := d.dwarf.LineReader(u.entry)
	if err != nil || r == nil {
		return err
	}
	var last, e dwarf.LineEntry
	open := false
	for range maxUnitRows {
		if err := r.Next(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if open && last.Address < e.Address && last.Address != 0 {
			row(last, e)
		}
		last, open = e, !e.EndSequence
	}
	return nil
}

// at returns the source line of addr, "" where there is none.
func (t *lineTable) at(addr uint64) (file string, line int) {
	if t.load == nil {
		return "", 0
	}
	d := t.load()
	if d == nil {
		return "", 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := sort.Search(len(d.spans), func(i int) bool { return d.spans[i].low > addr })
	const overlapping = 64 // units whose ranges are damaged, or nested
	for j := i - 1; j >= max(0, i-overlapping); j-- {
		if s := d.spans[j]; addr < s.high {
			if r := t.lookUp(d, d.units[s.unit], addr); r.file != "" {
				return r.file, r.line
			}
		}
	}
	return "", 0
}

func (t *lineTable) lookUp(d *lineData, u compileUnit, addr uint64) lineRow {
	rows, ok := t.decoded[dwarf.Offset(u.table)]
	if !ok {
		rows = d.decode(u)
		if t.rows += len(rows); t.rows > keptRows {
			clear(t.decoded)
			t.rows = len(rows)
		}
		t.decoded[dwarf.Offset(u.table)] = rows
	}
	i, exact := slices.BinarySearchFunc(rows, addr, func(r lineRow, a uint64) int { return cmp.Compare(r.addr, a) })
	if !exact {
		i--
	}
	if i < 0 || rows[i].end {
		return lineRow{}
	}
	return rows[i]
}

// decode sorts the rows of a unit's line program by address.
func (d *lineData) decode(u compileUnit) []lineRow {
	var rows []lineRow
	_ = guard("", func() error {
		return d.eachSpan(u, func(from, to dwarf.LineEntry) {
			if from.File == nil {
				return
			}
			rows = append(rows, lineRow{from.Address, printable(from.File.Name), from.Line, false},
				lineRow{to.Address, "", 0, true})
		})
	})
	slices.SortStableFunc(rows, func(a, b lineRow) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), falseFirst(a.end, b.end))
	})
	// Where one span ends and the next begins, the beginning counts.
	return slices.CompactFunc(rows, func(a, b lineRow) bool { return a.addr == b.addr })
}
