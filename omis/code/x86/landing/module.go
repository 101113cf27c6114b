package landing

import (
	"cmp"
	"debug/elf"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/omis/host/proc"
)

// Module is an executable segment of a file. Its places are offsets from its beginning.
type Module struct {
	Size uint64 // of the code
	// Go reports that the code belongs to a Go program, whose scheduler may store the
	// address of any instruction at which it interrupted a goroutine.
	Go bool
	// Goroutines is where that program lists its goroutines; nil if it has no symbol for
	// that.
	Goroutines *Goroutines

	runtime *Runtime // nil if it is not a Go program
	symbols []symbol // sorted by begin

	file     *os.File
	loaded   []elf.ProgHeader
	addr     uint64 // of the code, as linked
	offset   uint64 // of the code in the file
	absolute bool   // the module has a fixed address

	last      atomic.Pointer[block] // of the code that was read
	gathering sync.Mutex
	places    atomic.Pointer[places]

	collecting sync.Mutex
	collected  bool
	branches   []edge // to the beginnings of functions, sorted by target
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
// less than end. It is true if the file can no longer be read.
func (m *Module) Lands(begin, end uint64) bool {
	end = min(end, m.Size)
	if begin+1 >= end {
		return false
	}
	p := m.near(begin+1, end)
	return p == nil || p.lands(begin+1, end)
}

// TakesOwn reports whether a function takes the address of a place within itself. It is true if the file can no longer
// be read.
func (m *Module) TakesOwn(begin, end uint64) bool {
	const length = 6
	code := m.Code(begin, end+length-1)
	if begin+uint64(len(code)) < min(end, m.Size) {
		return true
	}
	for i := 0; i+length <= len(code); i++ {
		if code[i] == lea && code[i+1]&0xc7 == 0x05 {
			if to := begin + displaced(code, i+2); to > begin && to < end {
				return true
			}
		}
	}
	return false
}

// InGo reports whether the Go compiler or assembler made the code at a place. A Go
// program may also contain code of a C compiler, which runs on the stacks of threads.
func (m *Module) InGo(at uint64) bool { return m.Go && (m.runtime == nil || m.runtime.Has(m.addr+at)) }

// Runtime returns the Go runtime's data if the code at a place is Go, else nil.
func (m *Module) Runtime(at uint64) *Runtime { return m.runtime.at(m.addr + at) }

// IsEntry reports whether a function begins at a place, according to the symbols or
// because a call leads there.
func (m *Module) IsEntry(at uint64) bool {
	if s, ok := m.symbol(at); ok && s.begin == at {
		return s.entry
	}
	if at >= m.Size {
		return false
	}
	p := m.near(at, at+1)
	return p != nil && p.called.has(at-p.begin)
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

// Read reads the segment that is mapped from an offset in a file.
func Read(f *os.File, offset, length uint64) (*Module, error) {
	file, err := proc.ReadELF(f)
	if err == nil {
		err = proc.CheckSymbols(file)
	}
	if err != nil {
		return nil, err
	}
	m := &Module{Go: file.Section(".gopclntab") != nil, absolute: file.Type == elf.ET_EXEC}
	if err := cmp.Or(m.place(file, offset, length), m.keep(f)); err != nil {
		return nil, err
	}
	m.symbols = symbols(file, m.addr, m.Size)
	if m.Go {
		m.Goroutines = goroutines(file, m.addr)
		m.runtime = ReadRuntime(file)
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

// symbols lists the functions of both symbol tables.
func symbols(file *elf.File, addr, size uint64) []symbol {
	var list []symbol
	static, _ := file.Symbols() // a stripped file has none
	dynamic, _ := file.DynamicSymbols()
	for _, s := range slices.Concat(static, dynamic) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Value-addr >= size {
			continue
		}
		begin := s.Value - addr
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
