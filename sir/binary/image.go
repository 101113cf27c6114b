package binary

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"mirador/sir"
)

// DefaultDebugDir is the directory where distributions install separate debug files, by build
// id.
const DefaultDebugDir DebugDir = "/usr/lib/debug"

// File is the file of an image, such as an *os.File.
type File interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
}

// Image is a program or shared library on disk or in memory. It keeps its file open, because
// it reads code and line tables on demand. The file is closed when the image is garbage
// collected.
type Image struct {
	path    string
	name    string // the prefix of the ids
	file    File
	elf     *elf.File
	buildID string
	ibt     bool     // built with indirect branch tracking: every switch uses a notrack jump
	funcs   []symbol // all functions, sorted by address, aliases merged
	lines   *lineTable
	memory  int64
	stamp   fileKey // identity of the file
	program *once[sir.Program]
	// functions is the program without its files and lines.
	functions  func() sir.Program
	index      func() *sir.Index
	ids        func() *identities
	marked     func() *sir.Program // with nothing but markers and woven regions
	marks      func() *sir.Index   // of marked
	few        *fewUnits
	frames     func() frameTable
	imports    func() imported
	handlers   func() handlerTable
	whole      *elfFile
	inner      innerCache[uint64]
	innerLines innerCache[string]
	names      sync.Map // names in the source, by symbols
	endless    sync.Map // whether functions never return, by their addresses
}

var _ sir.Locator = (*Image)(nil)

// Open reads the program at path.
func Open(path string) (*Image, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	im, err := New(path, f, DefaultDebugDir)
	if err != nil {
		f.Close()
	}
	return im, err
}

// New reads a program from f. The base of path is the prefix of the units' ids. New searches
// debug for debug information that f lacks; nil disables the search.
func New(path string, f File, debug DebugFiles) (*Image, error) {
	return newImage(path, "", f, debug)
}

// NameOf returns the prefix of the ids of a file's units.
func NameOf(path string) string { return filepath.Base(strings.TrimSuffix(path, deleted)) }

// newImage is New with a name for the prefix of the ids; "" means the base of path.
func newImage(path, name string, f File, debug DebugFiles) (*Image, error) {
	path = strings.TrimSuffix(path, deleted)
	if name == "" {
		name = NameOf(path)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	im := &Image{path: path, name: name, file: f, stamp: stamp(info)}
	im.frames = sync.OnceValue(im.readFrames)
	im.handlers = sync.OnceValue(im.readHandlers)
	im.imports = sync.OnceValue(im.readImports)
	err = guard(path, func() error { return im.read(f, debug) })
	if err != nil {
		return nil, err
	}
	im.ids = sync.OnceValue(func() *identities { return newIdentities(im.name, im.funcs) })
	im.marked = sync.OnceValue(func() *sir.Program {
		woven, weaving := im.woven()
		return &sir.Program{Weaving: weaving, Markers: append(im.markers(), woven...)}
	})
	im.marks = sync.OnceValue(func() *sir.Index { return sir.NewIndex(im.marked()) })
	im.few = &fewUnits{im: im}
	im.functions = sync.OnceValue(im.makeFunctions)
	im.program = newOnce(im.makeProgram)
	im.index = sync.OnceValue(func() *sir.Index {
		p := im.functions()
		return sir.NewIndex(&p)
	})
	return im, nil
}

func (im *Image) read(f File, files DebugFiles) error {
	main, err := openELF(im.path, f)
	if err != nil {
		return err
	}
	im.elf, im.whole = main.File, main
	im.buildID, im.ibt = notes(main)
	debug := main
	if !main.has(".symtab") || !main.has(".debug_line") {
		if d := separateDebug(files, im.buildID); d != nil {
			debug = d
		}
	}
	im.funcs, err = functions(main, debug, im.frames)
	if err != nil {
		return err
	}
	im.lines = openLines(main, debug)
	im.memory = int64(len(im.funcs))*300 + main.symbolBytes() + im.lines.memory
	return nil
}

// Current reports whether the file is unchanged since it was read.
func (im *Image) Current() bool {
	info, err := im.file.Stat()
	return err == nil && stamp(info) == im.stamp
}

// Path returns the path under which the image was opened.
func (im *Image) Path() string { return im.path }

// SourceOf returns the file that an image was read from, nil if it is no file, as that of the vDSO.
func SourceOf(im *Image) *os.File {
	f, _ := im.file.(*os.File)
	return f
}

// BuildID returns the build id in hexadecimal, "" if the file has none.
func (im *Image) BuildID() string { return im.buildID }

// code reads size bytes of machine code at addr, an address in the file.
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

// data reads what the file has in memory at addr: up to size bytes.
func (im *Image) data(addr uint64, size int) []byte {
	for _, p := range im.elf.Progs {
		if p.Type != elf.PT_LOAD || addr-p.Vaddr >= p.Filesz {
			continue
		}
		b := make([]byte, min(uint64(size), p.Filesz-(addr-p.Vaddr)))
		if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err != nil {
			return nil
		}
		return b
	}
	return nil
}

// extent returns the range of addresses to which the image is loaded, without bias.
func (im *Image) extent() (low, high uint64) {
	low = ^uint64(0)
	for _, p := range im.elf.Progs {
		if p.Type == elf.PT_LOAD {
			low, high = min(low, p.Vaddr), max(high, p.Vaddr+p.Memsz)
		}
	}
	return low, high
}
