package binary

import (
	"debug/elf"
	"fmt"
	"io"

	"mirador/sir/safedwarf"
)

// elfFile is an ELF file with a checked header, and its real size.
type elfFile struct {
	*elf.File
	path   string
	r      io.ReaderAt
	size   int64
	stored uint64 // bytes of the file on disk, or an upper bound if the file system compresses
}

// Limits for what is read from a file. Real programs are far below them.
const (
	maxSections    = 1024
	maxSectionName = 64 << 10  // the whole table of section names
	maxSymbolTable = 256 << 20 // a symbol table, a string table
	maxFunction    = 4 << 20   // code of one function
)

// openELF checks the parts of the header that determine how much memory debug/elf allocates
// (it copies one name per section), then parses the file.
func openELF(path string, r File) (*elfFile, error) {
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	var h [64]byte
	if _, err := r.ReadAt(h[:], 0); err != nil || string(h[:4]) != elf.ELFMAG {
		return nil, &FormatError{path, "not an ELF file"}
	}
	if h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB) || le16(h[18:]) != uint16(elf.EM_X86_64) {
		return nil, &FormatError{path, "an ELF file, but not for x86-64"}
	}
	if t := elf.Type(le16(h[16:])); t != elf.ET_EXEC && t != elf.ET_DYN {
		return nil, &FormatError{path, "an ELF file, but neither a program nor a shared library"}
	}
	if why := oversized(r, h[:]); why != "" {
		return nil, &FormatError{path, why}
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, &FormatError{path, err.Error()}
	}
	return &elfFile{f, path, r, info.Size(), safedwarf.Stored(info)}, nil
}

// oversized explains which number of a header is invalid, "" if none is.
func oversized(r io.ReaderAt, h []byte) string {
	shoff, shentsize, shnum, shstrndx := le64(h[40:]), le16(h[58:]), le16(h[60:]), le16(h[62:])
	if shoff == 0 {
		return ""
	}
	if shnum == 0 || shnum > maxSections {
		return fmt.Sprintf("%d sections", shnum)
	}
	if shentsize != 64 || shstrndx >= shnum || shoff > 1<<62 {
		return "a damaged section table"
	}
	var sh [64]byte
	if _, err := r.ReadAt(sh[:], int64(shoff)+int64(shstrndx)*64); err != nil {
		return "truncated before its section table"
	}
	if n := le64(sh[32:]); n > maxSectionName {
		return fmt.Sprintf("section names of %d bytes", n)
	}
	return ""
}

func (f *elfFile) has(section string) bool {
	s := f.Section(section)
	return s != nil && s.Type != elf.SHT_NOBITS
}

// bytes reads a section without decompressing it.
func (f *elfFile) bytes(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		return nil, &FormatError{f.path, "section " + s.Name + " is compressed"}
	}
	if s.Offset > uint64(f.size) || s.FileSize > uint64(f.size)-s.Offset {
		return nil, &FormatError{f.path, "truncated in section " + s.Name}
	}
	if s.FileSize > min(maxSymbolTable, f.stored) {
		return nil, &FormatError{f.path, fmt.Sprintf("section %s has %d bytes", s.Name, s.FileSize)}
	}
	b := make([]byte, s.FileSize)
	if _, err := f.r.ReadAt(b, int64(s.Offset)); err != nil {
		return nil, &FormatError{f.path, "truncated in section " + s.Name}
	}
	return b, nil
}

// symbolBytes returns the memory for the names of symbols: no more than the file has, whatever its headers claim.
func (f *elfFile) symbolBytes() int64 {
	n := uint64(0)
	for _, s := range f.Sections {
		if s.Type == elf.SHT_STRTAB {
			n = min(n+min(s.FileSize, uint64(f.size)), uint64(f.size))
		}
	}
	return int64(n)
}

// executable reports whether addr is in an executable segment.
func (f *elfFile) executable(addr uint64) bool {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr-p.Vaddr < p.Memsz {
			return true
		}
	}
	return false
}
