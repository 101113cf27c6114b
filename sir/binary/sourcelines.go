package binary

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/safedwarf"
)

// sourceFile is what the line tables of a program say about one file of its source.
type sourceFile struct {
	path  string
	lines map[int][]lineRow
}

// lineRow is code of a line. A statement may begin at its first instruction, or the compiler only says
// which line the code is of. It is empty if the compiler left no code of a statement that begins there.
type lineRow struct {
	low, high uint64
	column    int // 0 if it is not known
	statement bool
}

// statements reports whether a statement of the source begins at the line.
func (f *sourceFile) statements(line int) bool {
	return slices.ContainsFunc(f.lines[line], func(r lineRow) bool { return r.statement })
}

// sourceFile finds the file of the source with a name: its path, or the end of its path after a slash.
// The error is a *sir.LineError if there are none or several.
func (im *Image) sourceFile(ctx context.Context, name string) (*sourceFile, error) {
	refuse := func(why string) (*sourceFile, error) {
		return nil, &sir.LineError{Program: im.name, File: name, Why: why}
	}
	if im.lines.data == nil {
		return refuse("the program has no line table: compile it with -g, or install its debug information")
	}
	d, err := im.lines.data.get(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]*sourceFile{}
	if d != nil {
		err = d.sourceFiles(ctx, name, found)
	}
	switch files := slices.Sorted(maps.Keys(found)); {
	case err != nil:
		return nil, err
	case len(files) == 1:
		return found[files[0]], nil
	case len(files) > 1 && found[name] != nil:
		return found[name], nil
	case len(files) > 1:
		const most = 8
		return refuse("it is the end of several paths, write more of one: " + strings.Join(files[:min(len(files), most)], ", "))
	}
	return refuse("no code of the program is from a file with this name")
}

var errManyRows = errors.New("the line tables of the program are too large")

// sourceFiles reads the lines of all files with a name.
func (d *lineData) sourceFiles(ctx context.Context, name string, found map[string]*sourceFile) error {
	seen := map[int64]bool{}
	rows := 0
	for _, u := range d.units {
		if seen[u.table] {
			continue
		}
		seen[u.table] = true
		// A damaged table is treated as if it ended before the damage.
		_ = guard("", func() error { return d.tableOf(ctx, u, name, found, &rows) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if rows > maxUnitRows {
			return errManyRows
		}
	}
	return nil
}

// tableOf adds the lines that the line program of a unit has.
func (d *lineData) tableOf(ctx context.Context, u compileUnit, name string, found map[string]*sourceFile, rows *int) error {
	lines, err := d.lines(ctx, u)
	if err != nil || lines == nil {
		return err
	}
	like := func(file string) bool { return file == name || strings.HasSuffix(file, "/"+name) }
	wanted := map[int]*sourceFile{}
	for _, n := range lines.FilesLike(func(file string) bool { return path.Base(file) == path.Base(name) && like(printable(file)) }) {
		file := printable(lines.File(n))
		wanted[n] = found[file]
		if wanted[n] == nil {
			wanted[n] = &sourceFile{path: file, lines: map[int][]lineRow{}}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return lines.EachPair(ctx, func(from, to safedwarf.Row) bool {
		if f := wanted[from.File]; f != nil && from.Line > 0 && from.Address <= to.Address && (from.Statement || from.Address < to.Address) {
			f.lines[from.Line] = append(f.lines[from.Line], lineRow{from.Address, to.Address, int(from.Column), from.Statement})
			if *rows++; found[f.path] == nil {
				for n, other := range wanted { // a file may have several numbers
					if other.path == f.path {
						wanted[n] = f
					}
				}
				found[f.path] = f
			}
		}
		return *rows <= maxUnitRows
	})
}

// near returns the lines before and behind a line at which a statement begins.
func (f *sourceFile) near(line int) (near []int) {
	before, after := 0, 0
	for n := range f.lines {
		switch {
		case !f.statements(n):
		case n < line && n > before:
			before = n
		case n > line && (after == 0 || n < after):
			after = n
		}
	}
	return slices.DeleteFunc([]int{before, after}, func(n int) bool { return n == 0 })
}

// sortRows sorts rows by their addresses, and removes equal ones.
func sortRows(rows []lineRow) []lineRow {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b lineRow) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), falseFirst(a.statement, b.statement))
	})
	return slices.Compact(rows)
}

// sourceLine is a line of a file.
type sourceLine struct {
	file string
	line int
}

// statement says that a statement of a line begins at an instruction.
type statement struct {
	addr uint64
	sourceLine
	column int // 0 if it is not known
}

// statements returns where statements begin in a function, in the order of their addresses. Several may begin
// at one instruction. With every, one begins at each row.
func (m *lineMaker) statements(t *tree, every bool) (all []statement, err error) {
	d, err := m.im.lines.data.get(m.ctx)
	if d == nil {
		return nil, err
	}
	for i := range t.insts {
		low := t.insts[i].addr
		if i > 0 && t.insts[i-1].end() == low {
			continue
		}
		end := i // of the part of the function that begins here
		for end+1 < len(t.insts) && t.insts[end].end() == t.insts[end+1].addr {
			end++
		}
		for _, u := range d.unitsAt(low) {
			table := m.im.lines.rowsOf(m.ctx, d, u)
			switch {
			case table == nil:
				return nil, m.ctx.Err()
			case len(table.begins) >= maxUnitRows || len(table.rows) >= maxUnitRows:
				return nil, errManyRows
			}
			rows := table.begins
			if every {
				rows = table.rows
			}
			from, _ := slices.BinarySearchFunc(rows, low, lineEntry.compare)
			to, _ := slices.BinarySearchFunc(rows, t.insts[end].end(), lineEntry.compare)
			for _, b := range rows[from:to] {
				if b.line <= 0 {
					continue
				}
				all = append(all, statement{b.addr, sourceLine{table.path(b.file), int(b.line)}, int(b.column)})
			}
		}
	}
	return all, nil
}
