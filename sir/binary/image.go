package binary

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"mirador/sir"
)

// DefaultDebugDir is where distributions put separate debug files, found there
// by build id.
const DefaultDebugDir = "/usr/lib/debug"

// File is what an image is read from. *os.File is one.
type File interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}

// Image is a program or shared library on disk or in memory. It keeps its file
// open, since code and line tables are read when they are asked for; the file is
// closed when the image is garbage.
type Image struct {
	path    string
	file    io.ReaderAt
	elf     *elf.File
	buildID string
	ibt     bool     // built with indirect branch tracking: every switch is a notrack jump
	funcs   []symbol // all functions, sorted by address, aliases merged
	lines   *lineTable
	memory  int64
	program func() sir.Program
}

// Open reads the program at path.
func Open(path string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	im, err := New(path, f, DefaultDebugDir)
	if err != nil {
		f.Close()
	}
	return im, err
}

// New reads a program from f. Path is what it is called: its base is the first
// part of the units' ids. Debug information that f lacks is looked for under
// debugDir, "" for nowhere.
func New(path string, f File, debugDir string) (*Image, error) {
	path = strings.TrimSuffix(path, " (deleted)") // as the kernel marks it
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	im := &Image{path: path, file: f}
	err = guard(path, func() error { return im.read(f, info.Size(), debugDir) })
	if err != nil {
		return nil, err
	}
	im.program = sync.OnceValue(im.makeProgram)
	return im, nil
}

func (im *Image) read(f io.ReaderAt, size int64, debugDir string) error {
	main, err := openELF(im.path, f, size)
	if err != nil {
		return err
	}
	im.elf = main.File
	im.buildID, im.ibt = notes(main)
	debug := main
	if !main.has(".symtab") || !main.has(".debug_line") {
		if d := separateDebug(debugDir, im.buildID); d != nil {
			debug = d
		}
	}
	im.funcs, err = functions(main, debug)
	if err != nil {
		return err
	}
	im.lines = openLines(main, debug)
	im.memory = int64(len(im.funcs))*200 + main.symbolBytes() + im.lines.memory
	return nil
}

// Path is the path the image was opened under.
func (im *Image) Path() string { return im.path }

// BuildID is the build id in hexadecimal, "" if the file has none.
func (im *Image) BuildID() string { return im.buildID }

// base is the first part of every id of the image.
func (im *Image) base() string { return filepath.Base(im.path) }

// elfFile is an ELF file whose header was found sane, with its real size.
type elfFile struct {
	*elf.File
	path string
	r    io.ReaderAt
	size int64
}

// Bounds on what is read from a file. Real programs stay far below them.
const (
	maxSections    = 1024
	maxSectionName = 64 << 10  // the whole table of section names
	maxSymbolTable = 256 << 20 // a symbol table, a string table
	maxDebug       = 1 << 30   // the DWARF sections together, uncompressed
	maxFunction    = 4 << 20   // code of one function
)

// openELF checks the parts of the header that decide how much memory debug/elf
// takes (it copies one name per section), then has it read the file.
func openELF(path string, r io.ReaderAt, size int64) (*elfFile, error) {
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
	return &elfFile{f, path, r, size}, nil
}

// oversized tells what is wrong with the numbers of a header, "" if nothing is.
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

// bytes reads a section as it stands in the file.
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
	if s.FileSize > maxSymbolTable {
		return nil, &FormatError{f.path, fmt.Sprintf("section %s has %d bytes", s.Name, s.FileSize)}
	}
	b := make([]byte, s.FileSize)
	if _, err := f.r.ReadAt(b, int64(s.Offset)); err != nil {
		return nil, &FormatError{f.path, "truncated in section " + s.Name}
	}
	return b, nil
}

func (f *elfFile) symbolBytes() (n int64) {
	for _, s := range f.Sections {
		if s.Type == elf.SHT_STRTAB {
			n += int64(s.FileSize)
		}
	}
	return n
}

// executable tells whether addr is code of the program.
func (f *elfFile) executable(addr uint64) bool {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && addr-p.Vaddr < p.Memsz {
			return true
		}
	}
	return false
}

// code reads size bytes of machine code at addr, an address of the file.
func (im *Image) code(addr, size uint64) ([]byte, error) {
	if size > maxFunction {
		return nil, &FormatError{im.path, fmt.Sprintf("a function of %d bytes at %#x", size, addr)}
	}
	for _, p := range im.elf.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || addr < p.Vaddr || addr-p.Vaddr >= p.Filesz {
			continue
		}
		b := make([]byte, min(size, p.Filesz-(addr-p.Vaddr)))
		if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err != nil {
			return nil, &FormatError{im.path, fmt.Sprintf("truncated before its code at %#x", addr)}
		}
		return b, nil
	}
	return nil, &FormatError{im.path, fmt.Sprintf("no code at %#x", addr)}
}

// extent is the range of addresses the image is loaded to, without bias.
func (im *Image) extent() (low, high uint64) {
	low = ^uint64(0)
	for _, p := range im.elf.Progs {
		if p.Type == elf.PT_LOAD {
			low, high = min(low, p.Vaddr), max(high, p.Vaddr+p.Memsz)
		}
	}
	return low, high
}

// separateDebug opens the debug file of a build id, nil if there is none that
// can be read.
func separateDebug(dir, buildID string) *elfFile {
	if dir == "" || len(buildID) < 4 {
		return nil
	}
	path := filepath.Join(dir, ".build-id", buildID[:2], buildID[2:]+".debug")
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil
	}
	d, err := openELF(path, f, info.Size())
	if err != nil {
		f.Close()
		return nil
	}
	if id, _ := notes(d); id != buildID {
		f.Close()
		return nil
	}
	return d
}

// notes reads the build id and whether the program was built for indirect
// branch tracking.
func notes(f *elfFile) (buildID string, ibt bool) {
	const (
		ntBuildID      = 3
		ntProperty     = 5
		propertyX86And = 0xc0000002
		featureIBT     = 1
	)
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.FileSize > 1<<16 {
			continue
		}
		b, err := f.bytes(s)
		if err != nil {
			continue
		}
		align := max(4, min(s.Addralign, 8))
		eachNote(b, align, func(name string, kind uint32, desc []byte) {
			switch {
			case name == "GNU\x00" && kind == ntBuildID:
				buildID = hex.EncodeToString(desc)
			case name == "GNU\x00" && kind == ntProperty:
				for len(desc) >= 12 {
					size := uint64(le32(desc[4:]))
					if le32(desc) == propertyX86And && size == 4 {
						ibt = le32(desc[8:])&featureIBT != 0
					}
					if 8+size > uint64(len(desc)) {
						break
					}
					desc = desc[min(uint64(len(desc)), (8+size+7)&^7):]
				}
			}
		})
	}
	return buildID, ibt
}

func eachNote(b []byte, align uint64, note func(name string, kind uint32, desc []byte)) {
	for len(b) >= 12 {
		nameLen, descLen, kind := uint64(le32(b)), uint64(le32(b[4:])), le32(b[8:])
		descAt := (12 + nameLen + align - 1) &^ (align - 1)
		end := descAt + descLen
		if end > uint64(len(b)) {
			return
		}
		note(string(b[12:12+nameLen]), kind, b[descAt:end])
		b = b[min(uint64(len(b)), (end+align-1)&^(align-1)):]
	}
}
