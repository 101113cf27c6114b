package binary

import (
	"cmp"
	"debug/dwarf"
	"io"
	"slices"
	"sort"
	"sync"

	"mirador/sir"
)

// lineTable finds the source line of an address, from the line programs of DWARF, and the
// declaration of a function, from its entry.
type lineTable struct {
	memory int64
	load   func() *lineData // nil without DWARF

	mu      sync.Mutex
	decoded map[dwarf.Offset][]lineRow // line programs decoded so far
	rows    int
}

// lineData is the DWARF of an image, read at first use.
type lineData struct {
	dwarf *dwarf.Data
	units []compileUnit
	spans []span // sorted by low
}

type compileUnit struct {
	entry *dwarf.Entry
	table int64 // offset of the line program, which several units may share

	first, end dwarf.Offset // its entries
}

type span struct {
	low, high uint64
	unit      int
}

type lineRow struct {
	addr uint64
	file string
	line int
	end  bool // no line is known from here on
}

// The debug information that is read is limited in proportion to the bytes stored in the file:
// compression makes it about four times smaller, and a file may have holes. A small amount is
// always allowed.
const (
	maxRatio = 20
	anyDebug = 16 << 20
)

// Limits for line data, far above those of real programs: many units of a file may refer to
// the same line program or list of ranges.
const (
	maxUnits    = 1 << 20
	maxSpans    = 4 << 20
	keptRows    = 1 << 20 // rows that are cached for look-ups
	maxUnitRows = 8 << 20
)

func openLines(main, debug *elfFile, b *budget) *lineTable {
	t := &lineTable{decoded: map[dwarf.Offset][]lineRow{}}
	f := main
	if !main.has(".debug_line") {
		f = debug
	}
	if !f.has(".debug_line") || !f.has(".debug_info") || !f.has(".debug_abbrev") {
		return t
	}
	total, stored := uint64(0), uint64(0)
	for _, name := range debugSections {
		if s := f.Section(name); s != nil {
			total += min(s.Size, maxDebug+1)
			stored += min(s.FileSize, maxDebug)
		}
	}
	if total > min(maxDebug, maxRatio*min(stored, f.stored)+anyDebug) {
		return t
	}
	t.memory = int64(total)
	t.load = sync.OnceValue(func() *lineData {
		var d *lineData
		if !b.take(t, int64(total)) {
			return nil
		}
		// Damaged debug information only makes the line numbers unavailable.
		if err := guard(f.path, func() (err error) { d, err = loadLines(f); return err }); err != nil {
			return nil
		}
		return d
	})
	return t
}

// locate sets file and line of the units, which are sorted by address.
func (t *lineTable) locate(units []sir.Unit) {
	if t.load == nil {
		return
	}
	d := t.load()
	if d == nil {
		return
	}
	index := newUnitIndex(units)
	seen := map[int64]bool{}
	for _, u := range d.units {
		// Use what a damaged unit provides before the error.
		_ = guard("", func() error { return d.declarations(u, index) })
	}
	for _, u := range d.units {
		if !seen[u.table] {
			seen[u.table] = true
			_ = guard("", func() error { return d.locateEntries(u, units) })
		}
	}
}

// locateEntries sets the line of units without a declaration (assembler code, Go) to that of
// their first instruction.
func (d *lineData) locateEntries(u compileUnit, units []sir.Unit) error {
	return d.eachSpan(u, func(from, to dwarf.LineEntry) {
		i, _ := slices.BinarySearchFunc(units, from.Address, func(u sir.Unit, a uint64) int { return cmp.Compare(u.Entry, a) })
		for ; i < len(units) && units[i].Entry < to.Address; i++ {
			if from.File != nil && units[i].File == "" {
				units[i].File, units[i].Line = printable(from.File.Name), from.Line
			}
		}
	})
}

// eachSpan runs the line program of a unit. It calls row for two consecutive rows of a
// sequence: the first row applies to the addresses from the first to the second.
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

// at returns the source line of addr, "" if it is unknown.
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
	const overlapping = 64 // units whose ranges are damaged or nested
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

// decode returns the rows of a unit's line program, sorted by address.
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
	// If one span ends where the next begins, keep the beginning.
	return slices.CompactFunc(rows, func(a, b lineRow) bool { return a.addr == b.addr })
}
