//go:build linux && amd64

package library

import (
	"context"
	"debug/dwarf"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
	"mirador/sir/safedwarf"
)

// longestLook is how long the debug information of a file is searched for a function. A
// request for library calls is checked while the engine waits.
const longestLook = 5 * time.Second

// typed returns the prototype of the function at an address according to the debug
// information of its module, which may be in a separate file; nil if there is none.
func (m module) typed(pid int, name string, addr uint64) *prototype.Func {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, known := m.types[addr]
	if !known {
		f = m.readTyped(pid, name, addr)
		m.types[addr] = f
	}
	return f
}

func (m module) readTyped(pid int, name string, addr uint64) *prototype.Func {
	files, err := proc.FilesOf(pid)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestLook)
	defer cancel()
	if file, err := files.Open(m.path); err == nil {
		defer file.Close()
		if f := debugged(ctx, file, name, addr); f != nil {
			return f
		}
	}
	if len(m.buildID) < 3 {
		return nil
	}
	file, err := os.Open(fmt.Sprintf("/usr/lib/debug/.build-id/%s/%s.debug", m.buildID[:2], m.buildID[2:]))
	if err != nil {
		return nil
	}
	defer file.Close()
	return debugged(ctx, file, name, addr)
}

// debugged reads the prototype of the function that begins at an address. Malformed
// tables can make the readers panic.
func debugged(ctx context.Context, r io.ReaderAt, name string, addr uint64) (f *prototype.Func) {
	defer func() {
		if recover() != nil {
			f = nil
		}
	}()
	file, err := proc.ReadELF(r)
	if err != nil {
		return nil
	}
	data, err := safedwarf.Open(ctx, r, file)
	if err != nil {
		return nil
	}
	defer data.Close()
	d := debug{ctx, data}
	for unit := range data.Units() {
		if d.covers(unit, addr) {
			return d.function(unit, name, addr)
		}
	}
	return nil
}

// debug is the debug information of a file, during one search.
type debug struct {
	ctx context.Context
	*safedwarf.Data
}

// covers reports whether the code at an address is a unit's.
func (d debug) covers(unit safedwarf.Unit, addr uint64) bool {
	entry, err := d.Entry(d.ctx, unit.First)
	if err != nil {
		return false
	}
	ranges, err := d.Ranges(entry)
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}

func (d debug) function(unit safedwarf.Unit, name string, addr uint64) *prototype.Func {
	reader := d.Reader(d.ctx)
	reader.Seek(unit.First)
	if _, err := reader.Next(); err != nil {
		return nil
	}
	for {
		entry, err := reader.Next()
		if err != nil || entry == nil || entry.Tag == dwarf.TagCompileUnit {
			return nil
		}
		if entry.Tag != dwarf.TagSubprogram {
			continue
		}
		if ranges, err := d.Ranges(entry); err == nil && len(ranges) > 0 && ranges[0][0] == addr {
			return d.subprogram(reader, entry, name)
		}
		if reader.SkipChildren() != nil {
			return nil
		}
	}
}

func (d debug) subprogram(reader *safedwarf.Reader, entry *dwarf.Entry, name string) *prototype.Func {
	f := &prototype.Func{Name: name, Result: d.typeOf(entry)}
	for entry.Children {
		child, err := reader.Next()
		if err != nil || child == nil || child.Tag == 0 {
			break
		}
		switch child.Tag {
		case dwarf.TagFormalParameter:
			p := prototype.Param{Type: d.typeOf(child)}
			p.Name, _ = d.attribute(child, dwarf.AttrName).(string)
			f.Params = append(f.Params, p)
		case dwarf.TagUnspecifiedParameters:
			f.Variadic = true
		}
		if reader.SkipChildren() != nil {
			break
		}
	}
	return f.Normalize()
}

// attribute returns an attribute of an entry, or of the entry that it refers to as its
// origin.
func (d debug) attribute(entry *dwarf.Entry, a dwarf.Attr) any {
	const longest = 8
	for range longest {
		if v := entry.Val(a); v != nil {
			return v
		}
		origin, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if origin, ok = entry.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return nil
			}
		}
		var err error
		if entry, err = d.Entry(d.ctx, origin); err != nil {
			return nil
		}
	}
	return nil
}

// typeOf returns the type of an entry; if it cannot be read, an integer register.
func (d debug) typeOf(entry *dwarf.Entry) prototype.Type {
	at, ok := d.attribute(entry, dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return prototype.Type{} // void
	}
	if d.byReference(at) {
		return prototype.PointerTo(prototype.Type{Kind: prototype.Aggregate})
	}
	t, err := d.Type(d.ctx, at)
	if err != nil {
		return prototype.Type{Kind: prototype.Integer, Size: 8, Signed: true}
	}
	return convert(t, 0)
}

// byReference reports whether a C++ class is passed by its address, because copying or
// destroying it executes code.
func (d debug) byReference(at dwarf.Offset) bool {
	const passByReference = 4 // DW_CC_pass_by_reference
	const longest = 8
	for range longest {
		entry, err := d.Entry(d.ctx, at)
		if err != nil {
			return false
		}
		switch entry.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType:
			next, ok := entry.Val(dwarf.AttrType).(dwarf.Offset)
			if !ok {
				return false
			}
			at = next
		default:
			how, _ := entry.Val(dwarf.AttrCalling).(int64)
			return how == passByReference
		}
	}
	return false
}
