package binary

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

// symbol is a function of a symbol table.
type symbol struct {
	name    string
	version string // if the symbol is not the default version of its name
	file    string // the STT_FILE before it; local symbols only
	addr    uint64
	size    uint64
	local   bool
	ifunc   bool // addr is the resolver's, not the function's
	unnamed bool // it has no symbol
}

// Names of symbols are parts of the string table, so in a hostile file a million symbols may
// share one huge string. Longer names than maxSymbolName are ignored, and the total length of
// all names is limited to a few times the string table.
const (
	maxSymbolName = 64 << 10
	namesPerTable = 8
	namesAnyhow   = 16 << 20
)

// functions reads all functions from the symbol tables: .symtab of the debug file or of the
// program itself, and .dynsym. For a stripped program it uses other sources as well.
func functions(main, debug *elfFile, frames func() frameTable) ([]symbol, error) {
	var all []symbol
	stripped := true
	for _, f := range []*elfFile{main, debug} {
		for _, s := range f.Sections {
			if s.Type != elf.SHT_SYMTAB && (s.Type != elf.SHT_DYNSYM || f != main) {
				continue
			}
			syms, err := readSymbols(f, s)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = syms
			} else {
				all = append(all, syms...)
			}
			stripped = stripped && s.Type != elf.SHT_SYMTAB
		}
		if main == debug {
			break
		}
	}
	if stripped {
		all = append(all, leftNames(main)...)
	}
	all = slices.DeleteFunc(all, func(s symbol) bool { return !main.executable(s.addr) })
	slices.SortFunc(all, bySymbol)
	all = fillSizes(main, mergeAliases(all))
	if stripped {
		all = withUnnamed(main, all, frames())
	}
	return all, nil
}

func bySymbol(a, b symbol) int {
	if c := cmp.Compare(a.addr, b.addr); c != 0 {
		return c
	}
	return byPreference(a, b)
}

func readSymbols(f *elfFile, s *elf.Section) ([]symbol, error) {
	if int(s.Link) >= len(f.Sections) {
		return nil, &FormatError{f.path, "symbol table without names"}
	}
	table, err := f.bytes(s)
	if err != nil {
		return nil, err
	}
	nameBytes, err := f.bytes(f.Sections[s.Link])
	if err != nil {
		return nil, err
	}
	names := string(nameBytes)
	var versions *versionTable
	if s.Type == elf.SHT_DYNSYM {
		versions = readVersions(f)
	}
	const size = elf.Sym64Size
	count := 0
	for i := 1; (i+1)*size <= len(table); i++ {
		if isFunction(table[i*size:]) {
			count++
		}
	}
	syms := make([]symbol, 0, count)
	file, total := "", 0
	for i := 1; (i+1)*size <= len(table); i++ {
		e := table[i*size:]
		kind, bind := elf.SymType(e[4]&15), elf.SymBind(e[4]>>4)
		if kind == elf.STT_FILE {
			file = cString(names, le32(e))
			continue
		}
		if !isFunction(e) {
			continue
		}
		name := cString(names, le32(e))
		if name == "" {
			continue
		}
		if total += len(name); total > namesPerTable*len(names)+namesAnyhow {
			return nil, &FormatError{f.path, "the names of symbols overlap too much"}
		}
		sym := symbol{name: name, addr: le64(e[8:]), size: le64(e[16:]), local: bind == elf.STB_LOCAL, ifunc: kind == elf.STT_GNU_IFUNC}
		sym.name, sym.version = splitVersion(name)
		if sym.local {
			sym.file = file
		}
		if v := versions.of(i); v != "" {
			sym.version = v
		}
		syms = append(syms, sym)
	}
	return syms, nil
}

// isFunction reports whether an entry of a symbol table is that of a function with code.
func isFunction(e []byte) bool {
	kind, section := elf.SymType(e[4]&15), elf.SectionIndex(le16(e[6:]))
	return (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && section != elf.SHN_UNDEF && section != elf.SHN_ABS
}

// splitVersion removes the version from a name of .symtab: "f@@V" is the default version of f
// and named f; "f@V" is another version.
func splitVersion(name string) (plain, version string) {
	plain, version, found := strings.Cut(name, "@")
	if !found || plain == "" {
		return name, ""
	}
	if strings.HasPrefix(version, "@") {
		return plain, ""
	}
	return plain, version
}

// byPreference sorts the best of several names at one address first: a global name, a name
// with fewer underscores, the default version, the shortest name. The remaining rules only
// make the order deterministic.
func byPreference(a, b symbol) int {
	return cmp.Or(
		falseFirst(a.ifunc, b.ifunc),
		falseFirst(a.local, b.local),
		cmp.Compare(underscores(a.name), underscores(b.name)),
		falseFirst(a.version != "", b.version != ""),
		cmp.Compare(len(a.name), len(b.name)),
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.version, b.version),
		cmp.Compare(a.file, b.file),
	)
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// underscores counts leading underscores, which mark internal names in C. Those of a mangled
// C++ or Rust name do not count.
func underscores(name string) int {
	n := len(name) - len(strings.TrimLeft(name, "_"))
	if strings.HasPrefix(name[n:], "Z") || strings.HasPrefix(name[n:], "R") {
		return 0
	}
	return n
}

// mergeAliases keeps the first of all symbols at one address, with the largest of their sizes.
func mergeAliases(sorted []symbol) []symbol {
	merged := sorted[:0]
	for _, s := range sorted {
		if n := len(merged); n > 0 && merged[n-1].addr == s.addr {
			merged[n-1].size = max(merged[n-1].size, s.size)
			continue
		}
		merged = append(merged, s)
	}
	return slices.Clip(merged)
}

// fillSizes extends a function without a size (assembler code, _init) to the next function or
// the end of its section. It limits all functions to their section.
func fillSizes(f *elfFile, funcs []symbol) []symbol {
	for i := range funcs {
		s := &funcs[i]
		end := f.sectionEnd(s.addr)
		if s.size == 0 {
			if i+1 < len(funcs) {
				end = min(end, funcs[i+1].addr)
			}
			s.size = end - s.addr
		}
		s.size = min(s.size, end-s.addr)
	}
	return funcs
}

// sectionEnd returns the end of the section, or else of the segment, that contains addr.
func (f *elfFile) sectionEnd(addr uint64) uint64 {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && addr >= s.Addr && addr-s.Addr < s.Size {
			return s.Addr + s.Size
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Memsz {
			return p.Vaddr + p.Memsz
		}
	}
	return addr
}

// find returns the function that contains addr, an address in the file.
func (im *Image) find(addr uint64) (symbol, bool) {
	i, exact := slices.BinarySearchFunc(im.funcs, addr, func(s symbol, a uint64) int { return cmp.Compare(s.addr, a) })
	if exact {
		return im.funcs[i], true
	}
	// A function may contain another one (an entry point of assembler code), so the nearest
	// symbol before addr may not contain addr.
	const nested = 8
	for j := i - 1; j >= 0 && j >= i-nested; j-- {
		if s := im.funcs[j]; addr-s.addr < s.size {
			return s, true
		}
	}
	return symbol{}, false
}

// cString returns the zero-terminated string at off, "" if there is none.
func cString(table string, off uint32) string {
	if uint64(off) >= uint64(len(table)) {
		return ""
	}
	rest := table[off:min(uint64(len(table)), uint64(off)+maxSymbolName)]
	end := strings.IndexByte(rest, 0)
	if end < 0 {
		return ""
	}
	return rest[:end]
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
