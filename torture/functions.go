//go:build linux && amd64

package main

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"mirador/omis/linux/proc"
	"mirador/sir"
	"mirador/sir/binary"
)

// function is one of a program or of its libraries.
type function struct {
	name, file string
	addr       uint64 // in the process
	offset     uint64 // of the file
}

// functionsOf lists all functions that the files of a process know by name.
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
		if file.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0 {
			list = append(list, function{name: s.Name, file: path, offset: s.Value})
		}
	}
	return list, nil
}

// find finds a function by its name, in the files of a name.
func find(all []function, name, file string) (function, bool) {
	i := slices.IndexFunc(all, func(f function) bool { return f.name == name && strings.Contains(f.file, file) })
	if i < 0 {
		return function{}, false
	}
	return all[i], true
}

// exits are the addresses in the process at which a function is left.
func (f function) exits() ([]uint64, error) {
	image, err := binary.Open(f.file)
	if err != nil {
		return nil, err
	}
	exits, err := image.Exits(sir.Unit{Name: f.name, Entry: f.offset})
	for i := range exits {
		exits[i] += f.addr - f.offset
	}
	return exits, err
}
