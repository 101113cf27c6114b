package binary

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"

	"mirador/sir/safedwarf"

	"mirador/sir"
)

// Stripping removes .symtab. A stripped program still describes its functions in .dynsym, in
// .gnu_debugdata (a compressed symbol table that some distributions add), in the .gopclntab of
// Go programs, and in .eh_frame, which has no names.

const (
	// maxMiniDebug limits the uncompressed size of .gnu_debugdata. In whole distributions it
	// stays below 10 MB.
	maxMiniDebug = 64 << 20
)

// leftNames reads the functions of a stripped program from sections other than .dynsym.
func leftNames(main *elfFile) (all []symbol) {
	for _, read := range []func(*elfFile) ([]symbol, error){miniDebug, goFunctions} {
		// A damaged section gives no functions, but the other one is still read.
		_ = guard(main.path, func() error {
			found, err := read(main)
			all = append(all, found...)
			return err
		})
	}
	return all
}

// miniDebug reads the symbol table of .gnu_debugdata.
func miniDebug(f *elfFile) ([]symbol, error) {
	s := f.Section(".gnu_debugdata")
	if s == nil {
		return nil, nil
	}
	packed, err := f.bytes(s)
	if err != nil {
		return nil, err
	}
	unpacked, err := unpack(f.path, packed)
	if err != nil {
		return nil, err
	}
	inner, err := openELF(f.path+" (.gnu_debugdata)", memoryFile{bytes.NewReader(unpacked)})
	if err != nil {
		return nil, err
	}
	for _, s := range inner.Sections {
		if s.Type == elf.SHT_SYMTAB {
			return readSymbols(inner, s)
		}
	}
	return nil, nil
}

// unpack decompresses an untrusted xz stream.
func unpack(path string, packed []byte) ([]byte, error) {
	config := xz.ReaderConfig{DictCap: maxMiniDebug, SingleStream: true}
	r, err := config.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, &FormatError{path, ".gnu_debugdata: " + err.Error()}
	}
	unpacked, err := io.ReadAll(io.LimitReader(r, maxMiniDebug+1))
	if err != nil {
		return nil, &FormatError{path, ".gnu_debugdata: " + err.Error()}
	}
	if len(unpacked) > maxMiniDebug {
		return nil, &FormatError{path, fmt.Sprintf(".gnu_debugdata unpacks to more than %d bytes", maxMiniDebug)}
	}
	return unpacked, nil
}

// goFunctions reads the function table of a Go program. The runtime needs the table, so strip
// keeps it.
func goFunctions(f *elfFile) ([]symbol, error) {
	s, text := f.Section(".gopclntab"), f.Section(".text")
	if s == nil || text == nil {
		return nil, nil
	}
	table, err := f.bytes(s)
	if err != nil {
		return nil, err
	}
	functions, err := safedwarf.GoFunctions(table, text.Addr)
	if err != nil {
		return nil, &FormatError{f.path, ".gopclntab: " + err.Error()}
	}
	var all []symbol
	for _, fn := range functions {
		if fn.Sym == nil || fn.Name == "" || len(fn.Name) > maxSymbolName || fn.End < fn.Entry {
			continue
		}
		all = append(all, symbol{name: strings.Clone(fn.Name), addr: fn.Entry, size: fn.End - fn.Entry})
	}
	return all, nil
}

// withUnnamed adds the functions that only the unwind information describes. It names them by
// their addresses. named is sorted by address. Parts of functions that the compiler moved
// elsewhere cannot be distinguished from functions, and are added as well.
func withUnnamed(f *elfFile, named []symbol, frames frameTable) []symbol {
	end := uint64(0) // of the previous functions
	next := 0
	all := slices.Clone(named)
	for _, p := range frames {
		for ; next < len(named) && named[next].addr <= p.low; next++ {
			end = max(end, named[next].addr+named[next].size)
		}
		if p.low < end || p.end <= p.low || !f.ordinaryCode(p.low) {
			continue
		}
		all = append(all, symbol{name: fmt.Sprintf("%s%x", sir.Unnamed, p.low), addr: p.low, size: p.end - p.low, unnamed: true})
		end = p.end
	}
	slices.SortFunc(all, bySymbol)
	return all
}

// ordinaryCode reports whether addr is code of the program itself. The stubs of the procedure
// linkage table also have unwind information.
func (f *elfFile) ordinaryCode(addr uint64) bool {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && addr >= s.Addr && addr-s.Addr < s.Size {
			return !strings.HasPrefix(s.Name, ".plt") && s.Name != ".init" && s.Name != ".fini"
		}
	}
	return false
}
