//go:build linux && amd64

package library

import (
	"debug/dwarf"
	"fmt"
	"io"
	"os"

	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
)

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
	if file, err := files.Open(m.path); err == nil {
		defer file.Close()
		if f := debugged(file, name, addr); f != nil {
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
	return debugged(file, name, addr)
}

// debugged reads the prototype of the function that begins at an address. Malformed
// tables can make the readers panic.
func debugged(r io.ReaderAt, name string, addr uint64) (f *prototype.Func) {
	defer func() {
		if recover() != nil {
			f = nil
		}
	}()
	file, err := proc.ReadELF(r)
	if err == nil {
		err = proc.CheckDebug(r, file)
	}
	if err != nil {
		return nil
	}
	data, err := file.DWARF()
	if err != nil {
		return nil
	}
	reader := data.Reader()
	if _, err := reader.SeekPC(addr); err != nil {
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
		if ranges, err := data.Ranges(entry); err == nil && len(ranges) > 0 && ranges[0][0] == addr {
			return subprogram(data, reader, entry, name)
		}
		reader.SkipChildren()
	}
}

func subprogram(data *dwarf.Data, reader *dwarf.Reader, entry *dwarf.Entry, name string) *prototype.Func {
	f := &prototype.Func{Name: name, Result: typeOf(data, entry)}
	for entry.Children {
		child, err := reader.Next()
		if err != nil || child == nil || child.Tag == 0 {
			break
		}
		switch child.Tag {
		case dwarf.TagFormalParameter:
			p := prototype.Param{Type: typeOf(data, child)}
			p.Name, _ = attribute(data, child, dwarf.AttrName).(string)
			f.Params = append(f.Params, p)
		case dwarf.TagUnspecifiedParameters:
			f.Variadic = true
		}
		reader.SkipChildren()
	}
	return f.Normalize()
}

// attribute returns an attribute of an entry, or of the entry that it refers to as its
// origin.
func attribute(data *dwarf.Data, entry *dwarf.Entry, a dwarf.Attr) any {
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
		if entry = entryAt(data, origin); entry == nil {
			return nil
		}
	}
	return nil
}

func entryAt(data *dwarf.Data, at dwarf.Offset) *dwarf.Entry {
	reader := data.Reader()
	reader.Seek(at)
	entry, err := reader.Next()
	if err != nil {
		return nil
	}
	return entry
}

// typeOf returns the type of an entry; if it cannot be read, an integer register.
func typeOf(data *dwarf.Data, entry *dwarf.Entry) prototype.Type {
	at, ok := attribute(data, entry, dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return prototype.Type{} // void
	}
	if byReference(data, at) {
		return prototype.PointerTo(prototype.Type{Kind: prototype.Aggregate})
	}
	t, err := data.Type(at)
	if err != nil {
		return prototype.Type{Kind: prototype.Integer, Size: 8, Signed: true}
	}
	return convert(t, 0)
}

// byReference reports whether a C++ class is passed by its address, because copying or
// destroying it executes code.
func byReference(data *dwarf.Data, at dwarf.Offset) bool {
	const passByReference = 4 // DW_CC_pass_by_reference
	const longest = 8
	for range longest {
		entry := entryAt(data, at)
		if entry == nil {
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
