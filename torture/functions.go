//go:build linux && amd64

package main

import (
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/host/proc"
	"mirador/sir"
	"mirador/sir/binary"
)

// function is a function of a program or of its libraries.
type function struct {
	name, file string
	addr       uint64 // address in the process
	offset     uint64 // address in the file, as linked
	at         uint64 // offset of its bytes in the file
	size       uint64
}

// functionsOf lists all functions in the symbol tables of the files of a process.
func functionsOf(pid int) ([]function, error) {
	p, err := proc.Identify(pid)
	if err != nil {
		return nil, err
	}
	modules, err := proc.Modules(p)
	if err != nil {
		return nil, err
	}
	var all []function
	for _, m := range modules {
		list, err := fileFunctions(m.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		for _, f := range list {
			f.addr = f.offset + m.Bias
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b function) int { return int(int64(a.addr - b.addr)) })
	return slices.CompactFunc(all, func(a, b function) bool { return a.addr == b.addr && len(a.name) <= len(b.name) }), nil
}

func fileFunctions(path string) ([]function, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, _ := file.Symbols() // a stripped file has none
	dynamic, _ := file.DynamicSymbols()
	var list []function
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || int(s.Section) >= len(file.Sections) {
			continue
		}
		if in := file.Sections[s.Section]; in.Flags&elf.SHF_EXECINSTR != 0 {
			list = append(list, function{name: s.Name, file: path, offset: s.Value, at: s.Value - in.Addr + in.Offset, size: s.Size})
		}
	}
	return list, nil
}

// find returns the function with a name, in files whose path contains a text.
func find(all []function, name, file string) (function, bool) {
	i := slices.IndexFunc(all, func(f function) bool { return f.name == name && strings.Contains(f.file, file) })
	if i < 0 {
		return function{}, false
	}
	return all[i], true
}

// instructions returns a place for each instruction of a function.
func (f function) instructions() ([]function, error) {
	file, err := os.Open(f.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	code := make([]byte, f.size)
	if _, err := file.ReadAt(code, int64(f.at)); err != nil {
		return nil, err
	}
	var all []function
	for at := uint64(0); at < f.size; {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return nil, fmt.Errorf("%s%+d: %w", f.name, at, err)
		}
		place := f
		place.name, place.addr = fmt.Sprintf("%s%+d", f.name, at), f.addr+at
		all = append(all, place)
		at += uint64(inst.Len)
	}
	return all, nil
}

// fragile returns a place for each instruction of the functions that keep values where other code
// can destroy them.
func fragile(all []function) (places []function, err error) {
	for _, f := range all {
		if !strings.HasPrefix(f.name, "fragile_") {
			continue
		}
		some, err := f.instructions()
		if err != nil {
			return nil, err
		}
		places = append(places, some...)
	}
	return places, nil
}

// exits returns the addresses in the process at which a function returns.
func (f function) exits() ([]uint64, error) {
	image, err := binary.Open(f.file)
	if err != nil {
		return nil, err
	}
	exits, err := image.Exits(&sir.Region{Name: f.name, Entry: f.offset})
	for i := range exits {
		exits[i] += f.addr - f.offset
	}
	return exits, err
}
