//go:build linux && amd64

package unwind

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"mirador/omis/host/proc"
)

// Layout knows where the modules of a process are mapped.
type Layout struct {
	images *Images
	pid    int
	main   string
	maps   proc.Mappings
	loaded map[uint64]module // by the start of the mapping
}

type module struct {
	*image
	bias uint64
}

// Layout reads the mappings of a process and loads their images when they are needed.
func (c *Images) Layout(pid int) (*Layout, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil, err
	}
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return &Layout{images: c, pid: pid, main: main, maps: maps, loaded: make(map[uint64]module)}, nil
}

// StackEnd returns the end of the mapping that contains sp, sp itself if there is none.
func (l *Layout) StackEnd(sp uint64) uint64 {
	if m, ok := l.maps.At(sp); ok {
		return m.End
	}
	return sp
}

// module finds the module whose code contains pc.
func (l *Layout) module(pc uint64) (module, bool) {
	m, ok := l.maps.At(pc)
	if !ok {
		return module{}, false
	}
	return l.moduleOf(m)
}

// moduleOf returns the module that is mapped at m.
func (l *Layout) moduleOf(m proc.Mapping) (module, bool) {
	if !m.Exec || m.Inode == 0 && m.Path != "[vdso]" {
		return module{}, false
	}
	found, ok := l.loaded[m.Start]
	if !ok {
		found.image = l.images.load(l.pid, m, l.main)
		if found.image != nil {
			found.bias, _ = found.image.bias(m)
		}
		l.loaded[m.Start] = found
	}
	return found, found.image != nil
}

// ModuleAt returns the path of the file mapped at pc.
func (l *Layout) ModuleAt(pc uint64) string {
	m, _ := l.maps.At(pc)
	return m.Path
}

// Function returns the beginning of the function that contains pc, according to the
// unwind tables; 0 if it is not in them.
func (l *Layout) Function(pc uint64) uint64 {
	m, ok := l.module(pc)
	if !ok {
		return 0
	}
	entry, err := m.find(pc - m.bias)
	if err != nil {
		return 0
	}
	return entry.Begin() + m.bias
}

// Bounds returns the bounds of the function that contains pc, according to the unwind
// tables. They are 0 if the function is not in the tables, if its code is not a private
// mapping, or if it is the code to which signal handlers return.
func (l *Layout) Bounds(pc uint64) (begin, end uint64) {
	mapped, ok := l.maps.At(pc)
	if !ok || !mapped.Private {
		return 0, 0
	}
	m, ok := l.moduleOf(mapped)
	if !ok {
		return 0, 0
	}
	begin, end = m.bounds(pc - m.bias)
	if begin == end {
		return 0, 0
	}
	return begin + m.bias, end + m.bias
}

// Table is the unwind table of a file.
type Table struct{ image }

// ReadTable reads the unwind table of a file.
func ReadTable(r io.ReaderAt) (*Table, error) {
	im, err := parse(r)
	if err != nil {
		return nil, err
	}
	return &Table{*im}, nil
}

// Bounds returns the bounds of the function that contains an address of the file, equal values if they are not in the
// table: see Layout.Bounds.
func (t *Table) Bounds(addr uint64) (begin, end uint64) { return t.bounds(addr) }

// Code returns the segments of the file that are code.
func (t *Table) Code() []elf.ProgHeader { return t.segments }

// bounds returns the bounds of the function that contains an address of the file.
func (im *image) bounds(addr uint64) (begin, end uint64) {
	entry, err := im.find(addr)
	if err != nil || isSignalFrame(entry) {
		return 0, 0
	}
	return entry.Begin(), entry.End()
}

// isSignalFrame reports whether an entry describes the code to which signal handlers
// return; such an entry begins before the code.
func isSignalFrame(entry *frame.FrameDescriptionEntry) bool {
	return strings.Contains(entry.CIE.Augmentation, "S")
}
