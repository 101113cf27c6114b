package landing

import (
	"debug/elf"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"mirador/omis/code/x86/branch"
	"mirador/omis/host/proc"
)

// Module is an executable segment of a file. All places in it are distances from
// its beginning.
type Module struct {
	Code []byte
	// Go tells that it is of a program in Go, whose scheduler may keep the address of
	// any instruction where it interrupted a goroutine.
	Go bool
	// Goroutines is where that program lists them; nil: no symbol tells.
	Goroutines *Goroutines

	runtime  *Runtime // nil: it is of no program in Go
	addr     uint64   // of the segment, in the file
	landings branch.Targets
	taken    []reference
	called   branch.Targets
	symbols  []symbol // by begin

	collect  sync.Once // of branches
	branches []edge    // to the begins of functions, by where they lead
}

// Goroutines are the places of two variables of Go's runtime: the address of an array
// with the address of each goroutine, and how many these are.
type Goroutines struct{ List, Count uint64 }

// symbol is a function that the symbol table names.
type symbol struct {
	begin, end uint64
	entry      bool // no part of another function
}

// Lands tells whether control may come from elsewhere behind begin, and before end.
func (m *Module) Lands(begin, end uint64) bool { return m.landings.Between(begin, end) }

// TakesOwn tells whether a function takes the address of a place within itself.
func (m *Module) TakesOwn(begin, end uint64) bool {
	i := sort.Search(len(m.taken), func(i int) bool { return m.taken[i].at >= begin })
	for ; i < len(m.taken) && m.taken[i].at < end; i++ {
		if to := m.taken[i].to; to > begin && to < end {
			return true
		}
	}
	return false
}

// InGo reports whether the code at a place is a Go compiler's or assembler's. Beside it a
// program in Go may have what a C compiler has made, which runs on stacks of threads.
func (m *Module) InGo(at uint64) bool { return m.Go && (m.runtime == nil || m.runtime.Has(m.addr+at)) }

// IsEntry tells whether a function begins at a place: the symbols say so, or it is
// called.
func (m *Module) IsEntry(at uint64) bool {
	if s, ok := m.symbol(at); ok && s.begin == at {
		return s.entry
	}
	return m.called.Has(at)
}

// Bounds are those of the function that has a place, as the symbols tell; 0 if
// they do not.
func (m *Module) Bounds(at uint64) (begin, end uint64) {
	s, _ := m.symbol(at)
	return s.begin, s.end
}

func (m *Module) symbol(at uint64) (symbol, bool) {
	i := sort.Search(len(m.symbols), func(i int) bool { return m.symbols[i].begin > at })
	if i == 0 || at >= m.symbols[i-1].end {
		return symbol{}, false
	}
	return m.symbols[i-1], true
}

var errNoCode = errors.New("the file has no such code")

// Read reads the segment of a file that is mapped from an offset in it.
func Read(r io.ReaderAt, offset, length uint64) (*Module, error) {
	file, err := proc.ReadELF(r)
	if err == nil {
		err = proc.CheckSymbols(file)
	}
	if err != nil {
		return nil, err
	}
	s := scan{absolute: file.Type == elf.ET_EXEC}
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		bytes := make([]byte, p.Filesz)
		if n, err := p.ReadAt(bytes, 0); err != nil && n < len(bytes) {
			return nil, err
		}
		s.all = append(s.all, segment{p.Vaddr, bytes})
		if p.Flags&elf.PF_X != 0 && p.Off&^(page-1) <= offset && offset < p.Off+p.Filesz {
			s.code = part(p, bytes, offset, length)
		}
	}
	if s.code.bytes == nil {
		return nil, errNoCode
	}
	m := &Module{Code: s.code.bytes, Go: file.Section(".gopclntab") != nil, landings: s.find(), taken: s.taken}
	m.called = branch.Calls(m.Code, 0)
	m.symbols = symbols(file, s.code)
	if m.Go {
		m.Goroutines = goroutines(file, s.code.addr)
		m.runtime, m.addr = ReadRuntime(file), s.code.addr
	}
	return m, nil
}

// RuntimeAt returns what the file tells of Go's runtime where the code at a place is of
// Go; else nil.
func (m *Module) RuntimeAt(at uint64) *Runtime {
	if !m.runtime.Has(m.addr + at) {
		return nil
	}
	return m.runtime
}

// goroutines finds them by the symbols of their variables.
func goroutines(file *elf.File, begin uint64) *Goroutines {
	at := make(map[string]uint64)
	static, _ := file.Symbols() // a stripped file has none
	for _, s := range static {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
			at[s.Name] = s.Value - begin
		}
	}
	list, listed := at["runtime.allgptr"]
	count, counted := at["runtime.allglen"]
	if !listed || !counted {
		return nil
	}
	return &Goroutines{list, count}
}

const page = 0x1000

// part is what of a segment is mapped from an offset in the file on. A mapping
// begins with a page, before the segment, maybe.
func part(p *elf.Prog, bytes []byte, offset, length uint64) segment {
	before := uint64(0)
	if offset < p.Off {
		before = p.Off - offset
	} else {
		bytes = bytes[offset-p.Off:]
	}
	code := append(make([]byte, before), bytes...)
	return segment{p.Vaddr + offset - p.Off, code[:min(uint64(len(code)), length)]}
}

// symbols lists the functions of both symbol tables.
func symbols(file *elf.File, code segment) []symbol {
	var list []symbol
	static, _ := file.Symbols() // a stripped file has none
	dynamic, _ := file.DynamicSymbols()
	for _, s := range slices.Concat(static, dynamic) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || !code.contains(s.Value) {
			continue
		}
		begin := s.Value - code.addr
		list = append(list, symbol{begin, begin + s.Size, !strings.Contains(s.Name, ".cold")})
	}
	slices.SortFunc(list, func(a, b symbol) int {
		if a.begin != b.begin {
			return int(int64(a.begin - b.begin))
		}
		return int(int64(a.end - b.end))
	})
	// Of several names for a place the longest function is last.
	return slices.Clip(lastOfEach(list))
}

func lastOfEach(list []symbol) []symbol {
	var kept []symbol
	for i, s := range list {
		if i+1 < len(list) && list[i+1].begin == s.begin {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}
