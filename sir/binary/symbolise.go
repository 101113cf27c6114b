package binary

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Module is a program or library in a process. Bias is the difference between an address in
// the process and in the file. Start and Len delimit its code; if Len is 0, they are read from
// the file.
type Module struct {
	Path       string
	Bias       uint64
	Start, Len uint64
}

// Symbols resolves the addresses of one process to functions and source lines. It opens a file
// when the first of its addresses is resolved. If a file cannot be read, names are missing; it
// is not an error. It serves one request: when the request's context ends, it reads no more
// lines.
type Symbols struct {
	ctx   context.Context
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

// Symbols returns a symboliser for the modules of a process. It opens their files with open.
func (c *Cache) Symbols(ctx context.Context, modules []Module, open Opener) *Symbols {
	s := &Symbols{ctx: ctx, cache: c, open: open}
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

// Frame describes the code at an address. Unknown fields are zero.
type Frame struct {
	PC       uint64
	Module   string // path
	InFile   uint64 // the address in the module's file
	Function string // the name in the source
	Offset   uint64 // from the function's entry
	File     string
	Line     int
}

// String returns "name+0x12 (file.c:34)", "name+0x12 (libc.so.6)" without a line, "0x1234
// (libc.so.6)" without a function, and the address alone outside all modules.
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

// Resolve describes pc, the address of the next instruction to execute.
func (s *Symbols) Resolve(pc uint64) Frame { return s.resolve(pc, pc) }

// ResolveReturn describes pc, a return address. It belongs to the preceding call, which may be
// the last instruction of its function or line.
func (s *Symbols) ResolveReturn(pc uint64) Frame { return s.resolve(pc, pc-1) }

// Stack resolves a backtrace. Its first address is the innermost frame's program counter; the
// others are return addresses.
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

// resolve describes pc by the code at at, which is pc or the call before it.
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
	f.File, f.Line = im.lines.at(s.ctx, at-bias)
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
