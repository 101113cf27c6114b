package binary

import (
	"cmp"
	"context"
	"debug/dwarf"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/sir"
	"mirador/sir/safedwarf"
)

// lineTable finds the source line of an address, from the line programs of DWARF, and the
// declaration of a function, from its entry.
type lineTable struct {
	memory int64
	data   *once[*lineData] // nil without DWARF

	inlined sync.Map // the instances in units, by their first entries
	// instances counts those in inlined, and their ranges.
	instances atomic.Int64

	mu      sync.Mutex
	decoded map[int64]*unitLines // line programs decoded so far, by their offsets
	rows    int
}

// lineData is the DWARF of an image, read at first use. nil stands for damaged DWARF.
type lineData struct {
	dwarf *safedwarf.Data
	units []compileUnit
	spans []span // sorted by low
}

type compileUnit struct {
	safedwarf.Unit
	table    int64  // offset of the line program, which several units may share
	producer string // the compiler
}

type span struct {
	low, high uint64
	unit      int
}

// unitLines is a decoded line program.
type unitLines struct {
	rows   []lineEntry // sorted by address
	begins []lineEntry // where statements begin, sorted by address
	lines  *safedwarf.Lines
	paths  []string // of the files
	long   int      // bytes of the paths
}

// lineEntry is a row of a line table. There may be millions.
type lineEntry struct {
	addr       uint64
	file, line int32
	column     uint16
}

func lineEntryOf(r safedwarf.Row) lineEntry {
	return lineEntry{r.Address, int32(min(max(r.File, 0), math.MaxInt32)), int32(min(max(r.Line, 0), math.MaxInt32)), r.Column}
}

func (l lineEntry) compare(addr uint64) int { return cmp.Compare(l.addr, addr) }

// noLine is the line of a row from which on no line is known.
const noLine = -1

// Limits for line data, far above what real programs need: many units of a file may refer to
// the same line program or list of ranges.
const (
	mostProducers = 1 << 10
	maxSpans      = 4 << 20
	keptRows      = 1 << 20 // rows that are cached for look-ups
	maxUnitRows   = 2 << 20
)

func openLines(main, debug *elfFile) *lineTable {
	t := &lineTable{decoded: map[int64]*unitLines{}}
	f := main
	if !main.has(".debug_line") {
		f = debug
	}
	if !f.has(".debug_line") {
		return t
	}
	size, err := safedwarf.Size(f.r, f.File)
	if err != nil {
		return t
	}
	t.memory = size
	t.data = newOnce(func(ctx context.Context) (d *lineData, err error) {
		err = guard(f.path, func() (err error) { d, err = loadLines(ctx, f); return err })
		if err != nil && (ctx.Err() != nil || errors.Is(err, safedwarf.ErrBudget)) {
			return nil, err
		}
		return d, nil // damaged debug information only makes the line numbers unavailable
	})
	return t
}

func loadLines(ctx context.Context, f *elfFile) (*lineData, error) {
	opened, err := safedwarf.Open(ctx, f.r, f.File)
	if err != nil {
		return nil, err
	}
	d := &lineData{dwarf: opened}
	return d, d.readUnits(ctx)
}

// readUnits finds the compile units and the address ranges of each. It reads only the headers:
// stepping over a unit's entries would require reading them all.
func (d *lineData) readUnits(ctx context.Context) error {
	producers := map[string]string{} // each once
	for u := range d.dwarf.Units() {
		if len(d.spans) > maxSpans {
			break
		}
		e, err := d.dwarf.Entry(ctx, u.First)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || e.Tag != dwarf.TagCompileUnit {
			continue
		}
		table, ok := e.Val(dwarf.AttrStmtList).(int64)
		if !ok {
			continue
		}
		producer, _ := e.Val(dwarf.AttrProducer).(string)
		if _, known := producers[producer]; !known && len(producers) < mostProducers {
			producers[producer] = producer
		}
		d.units = append(d.units, compileUnit{u, table, producers[producer]})
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
	return nil
}

// locate sets file and line of the units, which are sorted by address.
func (t *lineTable) locate(ctx context.Context, units []sir.Region) error {
	if t.data == nil {
		return nil
	}
	d, err := t.data.get(ctx)
	if d == nil {
		return err
	}
	index := newUnitIndex(units)
	seen := map[int64]bool{}
	for _, u := range d.units {
		// Use what a damaged unit provides before the error.
		_ = guard("", func() error { return d.declarations(ctx, u, index) })
	}
	for _, u := range d.units {
		if !seen[u.table] {
			seen[u.table] = true
			_ = guard("", func() error { return d.locateEntries(ctx, u, index) })
		}
	}
	return ctx.Err()
}

// lines returns the line program of a unit.
func (d *lineData) lines(ctx context.Context, u compileUnit) (*safedwarf.Lines, error) {
	e, err := d.dwarf.Entry(ctx, u.First)
	if err != nil {
		return nil, err
	}
	return d.dwarf.Lines(e)
}

// locateEntries sets the line of units without a declaration (assembler code, Go) to the line
// of their first instruction.
func (d *lineData) locateEntries(ctx context.Context, u compileUnit, index *unitIndex) error {
	lines, err := d.lines(ctx, u)
	if err != nil {
		return err
	}
	units := index.units
	low, high := uint64(0), uint64(0) // no unit begins between them
	return lines.Each(ctx, func(from, to safedwarf.Row) bool {
		if low <= from.Address && to.Address <= high {
			return true
		}
		i, _ := slices.BinarySearchFunc(units, from.Address, func(u sir.Region, a uint64) int { return cmp.Compare(u.Entry, a) })
		low, high = from.Address, math.MaxUint64
		if i < len(units) {
			high = units[i].Entry
		}
		for ; i < len(units) && units[i].Entry < to.Address; i++ {
			if units[i].File == "" {
				index.declare(i, declaration{printable(lines.File(from.File)), from.Line})
			}
		}
		return true
	})
}

// at returns the source line of addr, "" if it is unknown.
func (t *lineTable) at(ctx context.Context, addr uint64) (file string, line int) {
	if t.data == nil {
		return "", 0
	}
	d, _ := t.data.get(ctx)
	if d == nil {
		return "", 0
	}
	lines, row := t.row(ctx, d, addr)
	if lines == nil {
		return "", 0
	}
	return lines.path(row.file), int(row.line)
}

// positions returns the positions of instructions in the source. Those that are not known are zero.
func (t *lineTable) positions(ctx context.Context, insts []instruction) ([]position, error) {
	found := kept[position](&keptPositions, len(insts))
	if t.data == nil {
		return found, nil
	}
	d, err := t.data.get(ctx)
	if d == nil {
		return found, err
	}
	var nearest rowCursor
	for i := range insts {
		addr := insts[i].addr
		if addr-nearest.low >= nearest.high-nearest.low {
			nearest = t.cursor(ctx, d, addr)
		}
		lines, row := nearest.lines, nearest.at(addr)
		if row == nil {
			other, r := t.row(ctx, d, addr)
			if other == nil {
				continue
			}
			lines, row = other, &r
		}
		if path := lines.path(row.file); row.line > 0 && path != "" {
			found[i] = position{path, int(row.line), int(row.column)}
		}
	}
	return found, ctx.Err()
}

// rowCursor finds the rows of ascending addresses in the unit that begins nearest before them.
type rowCursor struct {
	lines     *unitLines // nil if no unit has code there
	low, high uint64     // the addresses
	next      int        // index of the row behind the current one
}

func (t *lineTable) cursor(ctx context.Context, d *lineData, addr uint64) rowCursor {
	i := d.spanAt(addr)
	if i < 0 || addr >= d.spans[i].high {
		return rowCursor{}
	}
	c := rowCursor{low: addr, high: d.spans[i].high, lines: t.rowsOf(ctx, d, d.units[d.spans[i].unit])}
	if i+1 < len(d.spans) {
		c.high = min(c.high, d.spans[i+1].low)
	}
	if c.lines != nil {
		c.next = sort.Search(len(c.lines.rows), func(n int) bool { return c.lines.rows[n].addr > addr })
	}
	return c
}

// at returns the row of an address that is not before the last one, nil if the unit has none.
func (c *rowCursor) at(addr uint64) *lineEntry {
	if c.lines == nil {
		return nil
	}
	for c.next < len(c.lines.rows) && c.lines.rows[c.next].addr <= addr {
		c.next++
	}
	if c.next == 0 {
		return nil
	}
	if row := &c.lines.rows[c.next-1]; row.line != noLine && c.lines.path(row.file) != "" {
		return row
	}
	return nil
}

// producer returns the compiler of the code at an address, "" if it is not known.
func (t *lineTable) producer(ctx context.Context, addr uint64) string {
	if t.data == nil {
		return ""
	}
	d, _ := t.data.get(ctx)
	if d == nil {
		return ""
	}
	i := d.spanAt(addr)
	if i < 0 || addr >= d.spans[i].high {
		return ""
	}
	return d.units[d.spans[i].unit].producer
}

// row returns the row of the line table that applies to an address, with its line program; nil
// if there is none.
func (t *lineTable) row(ctx context.Context, d *lineData, addr uint64) (*unitLines, lineEntry) {
	for _, u := range d.unitsAt(addr) {
		if lines, row := t.lookUp(ctx, d, u, addr); lines != nil {
			return lines, row
		}
	}
	return nil, lineEntry{}
}

// spanAt returns the last range of addresses that begins at an address or before it, or -1.
func (d *lineData) spanAt(addr uint64) int {
	return sort.Search(len(d.spans), func(i int) bool { return d.spans[i].low > addr }) - 1
}

// unitsAt returns the units with code at an address.
func (d *lineData) unitsAt(addr uint64) (units []compileUnit) {
	i := d.spanAt(addr)
	const overlapping = 64 // units whose ranges are damaged or nested
	for j := i; j >= max(0, i+1-overlapping); j-- {
		if s := d.spans[j]; addr < s.high {
			units = append(units, d.units[s.unit])
		}
	}
	return units
}

func (t *lineTable) lookUp(ctx context.Context, d *lineData, u compileUnit, addr uint64) (*unitLines, lineEntry) {
	known := t.rowsOf(ctx, d, u)
	if known == nil {
		return nil, lineEntry{}
	}
	i, exact := slices.BinarySearchFunc(known.rows, addr, lineEntry.compare)
	if !exact {
		i--
	}
	if i < 0 || known.rows[i].line == noLine || known.path(known.rows[i].file) == "" {
		return nil, lineEntry{}
	}
	return known, known.rows[i]
}

// rowsOf returns the rows of a unit, nil if ctx ends.
func (t *lineTable) rowsOf(ctx context.Context, d *lineData, u compileUnit) *unitLines {
	t.mu.Lock()
	known, ok := t.decoded[u.table]
	t.mu.Unlock()
	if ok {
		return known
	}
	known = d.decode(ctx, u)
	if ctx.Err() != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	size := len(known.rows) + len(known.begins)
	if t.rows += size; t.rows > keptRows {
		clear(t.decoded)
		t.rows = size
	}
	t.decoded[u.table] = known
	return known
}

// path returns the path of a file.
func (u *unitLines) path(file int32) string {
	if int(file) >= len(u.paths) {
		return ""
	}
	return u.paths[file]
}

// decode returns the rows of a unit's line program, and where it says that statements begin.
func (d *lineData) decode(ctx context.Context, u compileUnit) *unitLines {
	found := &unitLines{}
	var rows, begins []lineEntry
	_ = guard("", func() (err error) {
		if found.lines, err = d.lines(ctx, u); err != nil || found.lines == nil {
			return err
		}
		const bytes = 4 // of a program for a row, about
		rows, begins = make([]lineEntry, 0, found.lines.Size()/bytes), make([]lineEntry, 0, found.lines.Size()/bytes)
		return found.lines.EachPair(ctx, func(from, to safedwarf.Row) bool {
			if from.Statement && from.Line > 0 && from.Address <= to.Address {
				begins = append(begins, lineEntryOf(from))
			}
			if from.Address < to.Address {
				if n := len(rows); n > 0 && rows[n-1].line == noLine && rows[n-1].addr == from.Address {
					rows = rows[:n-1]
				}
				rows = append(rows, lineEntryOf(from), lineEntry{addr: to.Address, line: noLine})
			}
			return len(rows) < maxUnitRows && len(begins) < maxUnitRows
		})
	})
	slices.SortStableFunc(rows, func(a, b lineEntry) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), falseFirst(a.line == noLine, b.line == noLine))
	})
	slices.SortStableFunc(begins, func(a, b lineEntry) int { return cmp.Compare(a.addr, b.addr) })
	// If one span ends where the next begins, keep the beginning.
	rows = slices.CompactFunc(rows, func(a, b lineEntry) bool { return a.addr == b.addr })
	found.rows, found.begins = fitting(rows), fitting(begins)
	for _, rows := range [][]lineEntry{rows, begins} {
		for i := range rows {
			found.name(int(rows[i].file))
		}
	}
	return found
}

// fitting returns rows without unused memory behind them, if that is much.
func fitting(rows []lineEntry) []lineEntry {
	if cap(rows)-len(rows) > len(rows)/4 {
		return slices.Clone(rows)
	}
	return rows
}

// name sets the path of a file.
func (u *unitLines) name(file int) {
	if file < 0 || file < len(u.paths) && u.paths[file] != "" || file >= u.lines.Files() {
		return
	}
	if file >= len(u.paths) {
		u.paths = append(u.paths, make([]string, file+1-len(u.paths))...)
	}
	if u.long < mostPaths {
		u.paths[file] = printable(u.lines.File(file))
		u.long += len(u.paths[file])
	}
}

// isLLVM reports whether a compiler uses LLVM.
func isLLVM(producer string) bool {
	return strings.Contains(producer, "LLVM") || strings.Contains(producer, "clang")
}
