//go:build linux && amd64

package unwind

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"mirador/omis/host/proc"
)

// Layout is where the modules of a process are mapped.
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

// Layout reads the mappings of a process; their images are loaded as they are
// needed.
func (c *Images) Layout(pid int) (*Layout, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil, err
	}
	main, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return &Layout{images: c, pid: pid, main: main, maps: maps, loaded: make(map[uint64]module)}, nil
}

// StackEnd is the end of the mapping that sp lies in, sp itself if there is none.
func (l *Layout) StackEnd(sp uint64) uint64 {
	if m, ok := l.maps.At(sp); ok {
		return m.End
	}
	return sp
}

// module finds the module whose code holds pc.
func (l *Layout) module(pc uint64) (module, bool) {
	m, ok := l.maps.At(pc)
	if !ok {
		return module{}, false
	}
	return l.moduleOf(m)
}

// moduleOf is the module that a mapping is of.
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

// ModuleAt is the file that is mapped at pc.
func (l *Layout) ModuleAt(pc uint64) string {
	m, _ := l.maps.At(pc)
	return m.Path
}

// Function is where the function that holds pc begins, as far as the unwind
// tables tell; 0 if they do not.
func (l *Layout) Function(pc uint64) uint64 {
	m, ok := l.module(pc)
	if !ok {
		return 0
	}
	entry, err := m.entries.FDEForPC(pc - m.bias)
	if err != nil {
		return 0
	}
	return entry.Begin() + m.bias
}

// Bounds are those of the function that holds pc, as far as the unwind tables
// tell; 0 if they do not, if its code is not the process's own copy, or if it is what
// signal handlers return to.
func (l *Layout) Bounds(pc uint64) (begin, end uint64) {
	mapped, ok := l.maps.At(pc)
	if !ok || !mapped.Private {
		return 0, 0
	}
	m, ok := l.moduleOf(mapped)
	if !ok {
		return 0, 0
	}
	entry, err := m.entries.FDEForPC(pc - m.bias)
	if err != nil || isSignalFrame(entry) {
		return 0, 0
	}
	return entry.Begin() + m.bias, entry.End() + m.bias
}

// isSignalFrame tells whether an entry is for what signal handlers return to; it begins
// before the code does.
func isSignalFrame(entry *frame.FrameDescriptionEntry) bool {
	return strings.Contains(entry.CIE.Augmentation, "S")
}
