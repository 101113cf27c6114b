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

// Module is an executable segment of a file. Its places are offsets from its beginning.
type Module struct {
	Code []byte
	// Go reports that the code belongs to a Go program, whose scheduler may store the
	// address of any instruction at which it interrupted a goroutine.
	Go bool
	// Goroutines is where that program lists its goroutines; nil if it has no symbol for
	// that.
	Goroutines *Goroutines

	runtime  *Runtime // nil if it is not a Go program
	addr     uint64   // of the segment, in the file
	landings branch.Targets
	taken    []reference
	called   branch.Targets
	symbols  []symbol // sorted by begin

	collect  sync.Once // guards the collection of branches
	branches []edge    // to the beginnings of functions, sorted by target
}

// Goroutines holds the places of two variables of Go's runtime: a pointer to an array of
// the addresses of all goroutines, and their number.
type Goroutines struct{ List, Count uint64 }

// symbol is a function in the symbol table.
type symbol struct {
	begin, end uint64
	entry      bool // not a part of another function
}

// Lands reports whether control may come from elsewhere to a place greater than begin and
// less than end.
func (m *Module) Lands(begin, end uint64) bool { return m.landings.Between(begin, end) }

// TakesOwn reports whether a function takes the address of a place within itself.
func (m *Module) TakesOwn(begin, end uint64) bool {
	i := sort.Search(len(m.taken), func(i int) bool { return m.taken[i].at >= begin })
	for ; i < len(m.taken) && m.taken[i].at < end; i++ {
		if to := m.taken[i].to; to > begin && to < end {
			return true
		}
	}
	return false
}

// InGo reports whether the Go compiler or assembler made the code at a place. A Go
// program may also contain code of a C compiler, which runs on the stacks of threads.
func (m *Module) InGo(at uint64) bool { return m.Go && (m.runtime == nil || m.runtime.Has(m.addr+at)) }

// IsEntry reports whether a function begins at a place, according to the symbols or
// because a call leads there.
func (m *Module) IsEntry(at uint64) bool {
	if s, ok := m.symbol(at); ok && s.begin == at {
		return s.entry
	}
	return m.called.Has(at)
}

// Bounds returns the bounds of the function that contains a place, according to the
// symbols; 0 if it is not in them.
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

// Read reads the segment that is mapped from an offset in a file.
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
		before := uint64(0) // a mapping begins at a page boundary, which may be before the segment
		mapped := p.Flags&elf.PF_X != 0 && p.Off&^(page-1) <= offset && offset < p.Off+p.Filesz
		if mapped && offset < p.Off {
			before = p.Off - offset
		}
		all := make([]byte, before+p.Filesz)
		bytes := all[before:]
		if n, err := p.ReadAt(bytes, 0); err != nil && n < len(bytes) {
			return nil, err
		}
		s.all = append(s.all, segment{p.Vaddr, bytes})
		if mapped { // the code may be most of a file of 500 MB: it is not copied
			code := all[offset+before-p.Off:]
			s.code = segment{p.Vaddr + offset - p.Off, code[:min(uint64(len(code)), length)]}
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

// goroutines finds the variables by their symbols.
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
	// If a place has several names, the longest function comes last.
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
