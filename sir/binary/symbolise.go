package binary

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Module is a program or library as it lies in a process: Bias is what to add to
// an address of the file. Start and Len delimit its code; with Len 0 the file is
// asked.
type Module struct {
	Path       string
	Bias       uint64
	Start, Len uint64
}

// Symbols tells what stands at the addresses of one process. Files are opened at
// the first address that falls into them; what cannot be read costs the names,
// never an error.
type Symbols struct {
	cache *Cache
	open  Opener

	mu      sync.Mutex
	modules []loaded // sorted by start
}

type loaded struct {
	Module
	image  *Image
	opened bool
}

// Symbols makes a symboliser for the modules of a process, whose files open
// opens.
func (c *Cache) Symbols(modules []Module, open Opener) *Symbols {
	s := &Symbols{cache: c, open: open}
	for _, m := range modules {
		s.modules = append(s.modules, loaded{Module: m})
	}
	for i := range s.modules {
		s.modules[i].fillRange(s)
	}
	slices.SortFunc(s.modules, func(a, b loaded) int { return cmp.Compare(a.Start, b.Start) })
	return s
}

func (m *loaded) fillRange(s *Symbols) {
	if m.Len != 0 {
		return
	}
	if im := m.load(s); im != nil {
		if low, high := im.extent(); low < high {
			m.Start, m.Len = low+m.Bias, high-low
		}
	}
}

func (m *loaded) load(s *Symbols) *Image {
	if !m.opened {
		m.opened = true
		m.image, _ = s.cache.Open(m.Path, s.open)
	}
	return m.image
}

// Frame is what stands at an address. Fields that are not known are zero.
type Frame struct {
	PC       uint64
	Module   string // path
	InFile   uint64 // the address in the module's file
	Function string // as the source says it
	Offset   uint64 // from the function's entry
	File     string
	Line     int
}

// String is "name+0x12 (file.c:34)", "name+0x12 (libc.so.6)" without a line,
// "0x1234 (libc.so.6)" without a function, and the bare address outside of all
// modules.
func (f Frame) String() string {
	if f.Module == "" {
		return fmt.Sprintf("%#x", f.PC)
	}
	where := filepath.Base(strings.TrimSuffix(f.Module, deleted))
	if f.File != "" {
		where = fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
	}
	if f.Function == "" {
		return fmt.Sprintf("%#x (%s)", f.InFile, where)
	}
	return fmt.Sprintf("%s+%#x (%s)", f.Function, f.Offset, where)
}

// Resolve tells what stands at pc, the address of an instruction about to run.
func (s *Symbols) Resolve(pc uint64) Frame { return s.resolve(pc, pc) }

// ResolveReturn tells what stands at pc, a return address. It belongs to the call
// before it, which may be the last instruction of its function, or of its line.
func (s *Symbols) ResolveReturn(pc uint64) Frame { return s.resolve(pc, pc-1) }

// Stack resolves a backtrace, the innermost frame first; all others hold return
// addresses.
func (s *Symbols) Stack(pcs []uint64) []Frame {
	frames := make([]Frame, len(pcs))
	for i, pc := range pcs {
		if i == 0 {
			frames[i] = s.Resolve(pc)
		} else {
			frames[i] = s.ResolveReturn(pc)
		}
	}
	return frames
}

// resolve describes pc by what stands at, which is pc or the call before it.
func (s *Symbols) resolve(pc, at uint64) Frame {
	f := Frame{PC: pc}
	im, bias, path := s.imageAt(at)
	if path == "" {
		return f
	}
	f.Module, f.InFile = path, pc-bias
	if im == nil {
		return f
	}
	if fn, ok := im.find(at - bias); ok {
		f.Function, f.Offset = sourceName(fn.name), pc-bias-fn.addr
	}
	f.File, f.Line = im.lines.at(at - bias)
	return f
}

func (s *Symbols) imageAt(addr uint64) (im *Image, bias uint64, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.modules {
		if m := &s.modules[i]; addr-m.Start < m.Len {
			return m.load(s), m.Bias, m.Path
		}
	}
	return nil, 0, ""
}
