package binary

import (
	"debug/dwarf"

	"mirador/sir"
)

// declaration is where the source declares a function.
type declaration struct {
	file string
	line int
}

// declarations finds where the functions of a unit are declared, by their entry
// addresses. It reads the outermost entries only and goes into namespaces, where
// functions of C++ may be. Go has no links from one entry to its next sibling,
// so that all would have to be read, but its line tables begin each function
// with the line wanted.
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

// unitOf finds the unit whose code an entry describes. A function that was split
// has ranges, the part that is entered first.
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

// files is the file table of a unit, which entries refer to by number.
func (d *lineData) files(u compileUnit) ([]*dwarf.LineFile, error) {
	lines, err := d.dwarf.LineReader(u.entry)
	if err != nil || lines == nil {
		return nil, err
	}
	return lines.Files(), nil
}

// declared follows a function to the entry that says where it was declared: a
// definition of a method refers to its class, a clone to its origin. One in another
// unit counts files by a table of its own, so there the search ends.
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

// declare fills in a unit, once.
func (x *unitIndex) declare(i int, d declaration) {
	if u := &x.units[i]; u.File == "" && d.file != "" && d.line > 0 {
		u.File, u.Line = d.file, d.line
	}
}
