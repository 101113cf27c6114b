//go:build linux && amd64

package library

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
)

// image is the cached content of a file. Its addresses are those in the file.
type image struct {
	path      string
	main      bool
	functions map[string][]symbol
	// slots and chosen are the addresses at which the dynamic linker writes the
	// implementation it chose: by the name of a function, and by the address of its
	// choosing function.
	slots   map[string][]uint64
	chosen  map[uint64][]uint64
	buildID string
	soname  string
	state   uint64 // address at which a dynamic linker publishes its state (struct r_debug)

	mu    sync.Mutex
	types map[uint64]*prototype.Func // of functions asked for; nil if there is no debug information
}

type symbol struct {
	value   uint64
	size    uint64
	version string
	chooses bool // STT_GNU_IFUNC: it returns the address of the function to call
}

const typeIFunc = elf.SymType(10) // STT_GNU_IFUNC

// readImage reads the tables of symbols and relocations. Malformed tables can make the
// reader panic.
func readImage(r io.ReaderAt, path string, main bool) (im *image, err error) {
	defer func() {
		if p := recover(); p != nil {
			im, err = nil, fmt.Errorf("%s: malformed tables: %v", path, p)
		}
	}()
	file, err := proc.ReadELF(r)
	if err == nil {
		err = proc.CheckSymbols(file)
	}
	if err != nil {
		return nil, err
	}
	im = &image{
		path: path, main: main, functions: make(map[string][]symbol),
		slots: make(map[string][]uint64), chosen: make(map[uint64][]uint64), types: make(map[uint64]*prototype.Func),
	}
	dynamic, _ := file.DynamicSymbols()
	im.addFunctions(dynamic)
	if main {
		// All global symbols of a program count as exported, not only the dynamic ones.
		static, _ := file.Symbols()
		im.addFunctions(static)
	}
	for _, section := range file.Sections {
		if section.Type == elf.SHT_RELA && section.Flags&elf.SHF_ALLOC != 0 {
			im.addRelocations(section, dynamic)
		}
	}
	im.buildID = buildID(file)
	im.soname = soname(file)
	im.state = stateOf(dynamic)
	return im, nil
}

func (im *image) addFunctions(symbols []elf.Symbol) {
	for _, s := range symbols {
		t, bind := elf.ST_TYPE(s.Info), elf.ST_BIND(s.Info)
		if t != elf.STT_FUNC && t != typeIFunc || bind == elf.STB_LOCAL || s.Section == elf.SHN_UNDEF || s.Value == 0 {
			continue
		}
		known := slices.ContainsFunc(im.functions[s.Name], func(k symbol) bool { return k.value == s.Value })
		if !known {
			im.functions[s.Name] = append(im.functions[s.Name], symbol{value: s.Value, size: s.Size, version: s.Version, chooses: t == typeIFunc})
		}
	}
}

func (im *image) addRelocations(section *elf.Section, symbols []elf.Symbol) {
	data, err := section.Data()
	if err != nil {
		return
	}
	const size = 24
	for ; len(data) >= size; data = data[size:] {
		offset := binary.LittleEndian.Uint64(data)
		info := binary.LittleEndian.Uint64(data[8:])
		addend := binary.LittleEndian.Uint64(data[16:])
		switch elf.R_X86_64(info & 0xffffffff) {
		case elf.R_X86_64_IRELATIVE:
			im.chosen[addend] = append(im.chosen[addend], offset)
		case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT:
			// The table has no entry for symbol 0.
			if n := info >> 32; n >= 1 && n <= uint64(len(symbols)) {
				name := symbols[n-1].Name
				im.slots[name] = append(im.slots[name], offset)
			}
		}
	}
}

func soname(file *elf.File) string {
	names, err := file.DynString(elf.DT_SONAME)
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[0]
}

func stateOf(symbols []elf.Symbol) uint64 {
	for _, s := range symbols {
		if s.Name == stateName && s.Section != elf.SHN_UNDEF {
			return s.Value
		}
	}
	return 0
}

func buildID(file *elf.File) string {
	section := file.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	const header = 16 // sizes, type, "GNU\0"
	if err != nil || len(note) <= header {
		return ""
	}
	return fmt.Sprintf("%x", note[header:])
}
