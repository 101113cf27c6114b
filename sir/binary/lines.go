package binary

import (
	"cmp"
	"context"
	"debug/dwarf"
	"errors"
	"slices"
	"sort"
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
	begins  statementTable
	// instances counts those in inlined, and their ranges.
	instances atomic.Int64

	mu      sync.Mutex
	decoded map[int64]unitLines // line programs decoded so far, by their offsets
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
	table int64 // offset of the line program, which several units may share
}

type span struct {
	low, high uint64
	unit      int
}

// unitLines is a decoded line program. Its rows are sorted by address.
type unitLines struct {
	rows  []safedwarf.Row
	lines *safedwarf.Lines
}

// noLine is the line of a row from which on no line is known.
const noLine = -1

// Limits for line data, far above what real programs need: many units of a file may refer to
// the same line program or list of ranges.
const (
	maxSpans    = 4 << 20
	keptRows    = 1 << 20 // rows that are cached for look-ups
	maxUnitRows = 2 << 20
)

func openLines(main, debug *elfFile) *lineTable {
	t := &lineTable{decoded: map[int64]unitLines{}}
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
		d.units = append(d.units, compileUnit{u, table})
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
	return lines.Each(ctx, func(from, to safedwarf.Row) bool {
		i, _ := slices.BinarySearchFunc(units, from.Address, func(u sir.Region, a uint64) int { return cmp.Compare(u.Entry, a) })
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
	t.mu.Lock()
	defer t.mu.Unlock()
	lines, row := t.row(ctx, d, addr)
	if lines == nil {
		return "", 0
	}
	return printable(lines.File(row.File)), row.Line
}

// positions returns the positions of instructions in the source, where they are known.
func (t *lineTable) positions(ctx context.Context, insts []instruction) (map[uint64]position, error) {
	found := make(map[uint64]position, len(insts))
	if t.data == nil {
		return found, nil
	}
	d, err := t.data.get(ctx)
	if d == nil {
		return found, err
	}
	type fileOf struct {
		lines *safedwarf.Lines
		file  int
	}
	paths := map[fileOf]string{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range insts {
		lines, row := t.row(ctx, d, insts[i].addr)
		if lines == nil || row.Line <= 0 {
			continue
		}
		key := fileOf{lines, row.File}
		path, known := paths[key]
		if !known {
			path = printable(lines.File(row.File))
			paths[key] = path
		}
		if path != "" {
			found[insts[i].addr] = position{path, row.Line, int(row.Column)}
		}
	}
	return found, ctx.Err()
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
	i := sort.Search(len(d.spans), func(i int) bool { return d.spans[i].low > addr })
	if i == 0 || addr >= d.spans[i-1].high {
		return ""
	}
	e, err := d.dwarf.Entry(ctx, d.units[d.spans[i-1].unit].First)
	if err != nil {
		return ""
	}
	producer, _ := e.Val(dwarf.AttrProducer).(string)
	return producer
}

// row returns the row of the line table that applies to an address, with its line program; nil
// if there is none. t.mu is locked.
func (t *lineTable) row(ctx context.Context, d *lineData, addr uint64) (*safedwarf.Lines, safedwarf.Row) {
	for _, u := range d.unitsAt(addr) {
		if lines, row := t.lookUp(ctx, d, u, addr); lines != nil {
			return lines, row
		}
	}
	return nil, safedwarf.Row{}
}

// unitsAt returns the units with code at an address.
func (d *lineData) unitsAt(addr uint64) (units []compileUnit) {
	i := sort.Search(len(d.spans), func(i int) bool { return d.spans[i].low > addr })
	const overlapping = 64 // units whose ranges are damaged or nested
	for j := i - 1; j >= max(0, i-overlapping); j-- {
		if s := d.spans[j]; addr < s.high {
			units = append(units, d.units[s.unit])
		}
	}
	return units
}

func (t *lineTable) lookUp(ctx context.Context, d *lineData, u compileUnit, addr uint64) (*safedwarf.Lines, safedwarf.Row) {
	known, ok := t.decoded[u.table]
	if !ok {
		known = d.decode(ctx, u)
		if ctx.Err() != nil {
			return nil, safedwarf.Row{}
		}
		if t.rows += len(known.rows); t.rows > keptRows {
			clear(t.decoded)
			t.rows = len(known.rows)
		}
		t.decoded[u.table] = known
	}
	i, exact := slices.BinarySearchFunc(known.rows, addr, func(r safedwarf.Row, a uint64) int { return cmp.Compare(r.Address, a) })
	if !exact {
		i--
	}
	if i < 0 || known.rows[i].Line == noLine || known.lines.File(known.rows[i].File) == "" {
		return nil, safedwarf.Row{}
	}
	return known.lines, known.rows[i]
}

// decode returns the rows of a unit's line program.
func (d *lineData) decode(ctx context.Context, u compileUnit) (found unitLines) {
	var rows []safedwarf.Row
	_ = guard("", func() (err error) {
		if found.lines, err = d.lines(ctx, u); err != nil {
			return err
		}
		return found.lines.Each(ctx, func(from, to safedwarf.Row) bool {
			if n := len(rows); n > 0 && rows[n-1].Line == noLine && rows[n-1].Address == from.Address {
				rows = rows[:n-1]
			}
			rows = append(rows, from, safedwarf.Row{Address: to.Address, Line: noLine})
			return len(rows) < maxUnitRows
		})
	})
	slices.SortStableFunc(rows, func(a, b safedwarf.Row) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), falseFirst(a.Line == noLine, b.Line == noLine))
	})
	// If one span ends where the next begins, keep the beginning.
	found.rows = slices.CompactFunc(rows, func(a, b safedwarf.Row) bool { return a.Address == b.Address })
	return found
}
