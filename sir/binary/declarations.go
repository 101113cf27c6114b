package binary

import (
	"context"
	"debug/dwarf"

	"mirador/sir"
	"mirador/sir/safedwarf"
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
func (d *lineData) declarations(ctx context.Context, u compileUnit, units *unitIndex) error {
	r := d.dwarf.Reader(ctx)
	r.Seek(u.First)
	unit, err := r.Next()
	if err != nil || unit == nil {
		return err
	}
	if language, _ := unit.Val(dwarf.AttrLanguage).(int64); language == languageGo {
		return nil
	}
	lines, err := d.dwarf.Lines(unit)
	if err != nil {
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
			if entry, ok := entryOf(d, e); ok {
				if i, ok := units.at(entry); ok {
					units.declare(i, d.declared(ctx, e, u, lines))
				}
			}
		}
		if err := r.SkipChildren(); err != nil {
			return err
		}
	}
	return nil
}

const languageGo = 0x16

// declared follows a function's entry to the one with its declaration: the definition of a
// method refers to its class, a clone to its origin. The search ends at another compile unit,
// which has its own file table.
func (d *lineData) declared(ctx context.Context, e *dwarf.Entry, u compileUnit, files *safedwarf.Lines) declaration {
	const deepest = 4
	var found declaration
	for range deepest {
		if line, ok := e.Val(dwarf.AttrDeclLine).(int64); ok && found.line == 0 {
			found.line = int(line)
		}
		if n, ok := e.Val(dwarf.AttrDeclFile).(int64); ok && found.file == "" && files != nil {
			found.file = printable(files.File(int(n)))
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
		if next < u.First || next >= u.End {
			break
		}
		origin, err := d.dwarf.Entry(ctx, next)
		if err != nil {
			break
		}
		e = origin
	}
	return found
}

// unitIndex finds units by their entry address, and sets their declarations.
type unitIndex struct {
	units []sir.Region
	index map[uint64]int
	paths map[string]string // each path once
	left  int               // bytes that further paths may have
}

// mostPaths limits the bytes of the paths of one program.
const mostPaths = 64 << 20

func newUnitIndex(units []sir.Region) *unitIndex {
	x := &unitIndex{units, make(map[uint64]int, len(units)), map[string]string{}, mostPaths}
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
	u := &x.units[i]
	if u.File != "" || d.file == "" || d.line <= 0 {
		return
	}
	path, known := x.paths[d.file]
	if !known {
		if len(d.file) > x.left {
			return
		}
		x.left -= len(d.file)
		path = d.file
		x.paths[path] = path
	}
	u.File, u.Line = path, d.line
}
