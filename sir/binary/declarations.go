package binary

import (
	"debug/dwarf"

	"mirador/sir"
)

// declaration is the position of a function in the source.
type declaration struct {
	file string
	line int
}

// declarations finds the declarations of a compile unit's functions by their entry addresses.
// It reads only the outermost entries, and those in namespaces for C++. It skips Go: Go's
// entries have no sibling links, so all entries would have to be read, but Go's line tables
// start each function with the line of its declaration.
func (d *lineData) declarations(u compileUnit, units *unitIndex) error {
	if language, _ := u.entry.Val(dwarf.AttrLanguage).(int64); language == languageGo {
		return nil
	}
	files, err := d.files(u)
	if err != nil {
		return err
	}
	r := d.dwarf.Reader()
	r.Seek(u.entry.Offset)
	if _, err := r.Next(); err != nil {
		return err
	}
	for depth := 1; depth > 0; {
		e, err := r.Next()
		if err != nil || e == nil {
			return err
		}
		switch {
		case e.Tag == 0:
			depth--
			continue
		case e.Tag == dwarf.TagNamespace && e.Children:
			depth++
			continue
		case e.Tag == dwarf.TagSubprogram:
			if i, ok := d.unitOf(e, units); ok {
				units.declare(i, d.declared(e, u, files))
			}
		}
		r.SkipChildren()
	}
	return nil
}

const languageGo = 0x16

// unitOf finds the unit whose code an entry describes. A function in several parts has ranges;
// the first one contains the entry point.
func (d *lineData) unitOf(e *dwarf.Entry, units *unitIndex) (int, bool) {
	if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
		return units.at(low)
	}
	if e.Val(dwarf.AttrRanges) == nil {
		return 0, false
	}
	ranges, err := d.dwarf.Ranges(e)
	if err != nil || len(ranges) == 0 {
		return 0, false
	}
	return units.at(ranges[0][0])
}

// files returns the file table of a compile unit, to which entries refer by number.
func (d *lineData) files(u compileUnit) ([]*dwarf.LineFile, error) {
	lines, err := d.dwarf.LineReader(u.entry)
	if err != nil || lines == nil {
		return nil, err
	}
	return lines.Files(), nil
}

// declared follows a function's entry to the one with its declaration: the definition of a
// method refers to its class, a clone to its origin. The search ends at another compile unit,
// which has its own file table.
func (d *lineData) declared(e *dwarf.Entry, u compileUnit, files []*dwarf.LineFile) declaration {
	const deepest = 4
	var found declaration
	for range deepest {
		if line, ok := e.Val(dwarf.AttrDeclLine).(int64); ok && found.line == 0 {
			found.line = int(line)
		}
		if n, ok := e.Val(dwarf.AttrDeclFile).(int64); ok && found.file == "" && n >= 0 && n < int64(len(files)) && files[n] != nil {
			found.file = printable(files[n].Name)
		}
		if found.line != 0 && found.file != "" {
			break
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		if next < u.first || next >= u.end {
			break
		}
		r := d.dwarf.Reader()
		r.Seek(next)
		origin, err := r.Next()
		if err != nil || origin == nil {
			break
		}
		e = origin
	}
	return found
}

// unitIndex finds units by their entry address.
type unitIndex struct {
	units []sir.Unit
	index map[uint64]int
}

func newUnitIndex(units []sir.Unit) *unitIndex {
	x := &unitIndex{units, make(map[uint64]int, len(units))}
	for i, u := range units {
		x.index[u.Entry] = i
	}
	return x
}

func (x *unitIndex) at(entry uint64) (int, bool) {
	i, ok := x.index[entry]
	return i, ok
}

// declare sets the declaration of a unit, once.
func (x *unitIndex) declare(i int, d declaration) {
	if u := &x.units[i]; u.File == "" && d.file != "" && d.line > 0 {
		u.File, u.Line = d.file, d.line
	}
}
