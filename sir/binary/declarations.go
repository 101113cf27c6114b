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
	unit, err := d.dwarf.Entry(ctx, u.First)
	if err != nil {
		return err
	}
	if language, _ := unit.Val(dwarf.AttrLanguage).(int64); language == languageGo {
		return nil
	}
	lines, err := d.dwarf.Lines(unit)
	if err != nil {
		return err
	}
	e, err := d.dwarf.Scan(ctx, u.Unit)
	if err != nil {
		return err
	}
	if _, err := e.Next(); err != nil {
		return err
	}
	for depth := 1; depth > 0; {
		if more, err := e.Next(); err != nil || !more {
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
			if entry, ok := entryOf(e); ok {
				if i, ok := units.at(entry); ok {
					units.declare(i, declared(*e, u, lines))
				}
			}
		}
		if err := e.SkipChildren(); err != nil {
			return err
		}
	}
	return nil
}

const languageGo = 0x16

// declared follows a function's entry to the one with its declaration: the definition of a
// method refers to its class, a clone to its origin. The search ends at another compile unit,
// which has its own file table.
func declared(e safedwarf.Scan, u compileUnit, files *safedwarf.Lines) declaration {
	const deepest = 4
	var found declaration
	for range deepest {
		if line, ok := e.Int(dwarf.AttrDeclLine); ok && found.line == 0 {
			found.line = int(line)
		}
		if n, ok := e.Int(dwarf.AttrDeclFile); ok && found.file == "" && files != nil {
			found.file = printable(files.File(int(n)))
		}
		if found.line != 0 && found.file != "" {
			break
		}
		next, ok := e.Ref(dwarf.AttrAbstractOrigin)
		if !ok {
			if next, ok = e.Ref(dwarf.AttrSpecification); !ok {
				break
			}
		}
		if next < u.First || next >= u.End || e.Seek(next) != nil {
			break
		}
		if more, err := e.Next(); err != nil || !more {
			break
		}
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
