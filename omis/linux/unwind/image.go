//go:build linux && amd64

package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"mirador/omis/host/proc"
)

const pointerSize = 8

// image holds what unwinding needs of a module: its unwind entries, by the addresses in
// the file, and its code segments, to find the bias.
type image struct {
	indexed  *index                        // of .eh_frame, nil if there is none
	entries  frame.FrameDescriptionEntries // of other tables
	segments []elf.ProgHeader
}

// Images caches the images of modules, so that each is parsed once for all processes.
type Images struct {
	mu    sync.Mutex
	known map[proc.Version]*image
}

// NewImages returns an empty cache.
func NewImages() *Images { return &Images{known: make(map[proc.Version]*image)} }

// vdso identifies the vDSO, which has no file, in the cache.
var vdso = proc.Version{}

// load returns the image of a mapping, nil if it cannot be read.
func (c *Images) load(pid int, m proc.Mapping, main string) *image {
	source, id, err := open(pid, m, main)
	if err != nil {
		return nil
	}
	defer source.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if im, ok := c.known[id]; ok {
		return im
	}
	im, err := parse(source)
	if err != nil {
		im = nil // cached too, since the file will not change
	}
	c.known[id] = im
	return im
}

type source interface {
	io.ReaderAt
	io.Closer
}

func open(pid int, m proc.Mapping, main string) (source, proc.Version, error) {
	if m.Path == "[vdso]" {
		const most = 1 << 20
		code := make([]byte, min(m.End-m.Start, most))
		n, err := proc.ReadMemory(pid, m.Start, code)
		return memoryFile{bytes.NewReader(code[:n])}, vdso, err
	}
	f, err := proc.OpenImage(pid, m)
	if err != nil {
		return nil, proc.Version{}, err
	}
	id, err := proc.VersionOf(f)
	if err != nil {
		f.Close()
		return nil, proc.Version{}, err
	}
	return f, id, nil
}

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

// parse reads the unwind tables. A malformed table can make the parser panic.
func parse(r io.ReaderAt) (im *image, err error) {
	defer func() {
		if p := recover(); p != nil {
			im, err = nil, fmt.Errorf("malformed unwind tables: %v", p)
		}
	}()
	file, err := proc.ReadELF(r)
	if err != nil {
		return nil, err
	}
	im = new(image)
	for _, s := range file.Progs {
		// Only code segments matter. A page may be mapped twice, as the end of one
		// segment and the beginning of the next, with different biases.
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			im.segments = append(im.segments, s.ProgHeader)
		}
	}
	// Append sorts the entries, which Parse does not; the search by address requires it.
	// The second table is for debuggers, and the only one of a Go program.
	if im.indexed = readIndex(file); im.indexed == nil {
		im.entries = im.entries.Append(entries(file, ".eh_frame"))
	}
	im.entries = im.entries.Append(entries(file, ".debug_frame"))
	return im, nil
}

// entries reads an unwind table, nil if there is none or it is malformed.
func entries(file *elf.File, name string) frame.FrameDescriptionEntries {
	section, data := content(file, name)
	if data == nil {
		return nil
	}
	// A base of 0 makes addresses in the table absolute instead of relative to their
	// position.
	list, err := frame.Parse(data, binary.LittleEndian, 0, pointerSize, section.Addr)
	if err != nil {
		return nil
	}
	return list
}

// content reads a section, nil if there is none or it is too large.
func content(file *elf.File, name string) (*elf.Section, []byte) {
	section := file.Section(name)
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	const ratio, least, most = 20, 16 << 20, 256 << 20 // limits for compressed sections
	if section.Size > min(ratio*section.FileSize+least, most) {
		return nil, nil
	}
	data, err := section.Data()
	if err != nil {
		return nil, nil
	}
	return section, data
}

// find returns the entry for an address.
func (im *image) find(pc uint64) (*frame.FrameDescriptionEntry, error) {
	if im.indexed != nil {
		if entry := im.indexed.find(pc); entry != nil {
			return entry, nil
		}
	}
	return im.entries.FDEForPC(pc)
}

// bias returns the difference between the addresses in mapping m and in the file.
func (im *image) bias(m proc.Mapping) (uint64, bool) {
	const page = 0x1000
	for _, s := range im.segments {
		if s.Off&^(page-1) <= m.Offset && m.Offset < s.Off+s.Filesz {
			return m.Start - m.Offset - (s.Vaddr - s.Off), true
		}
	}
	return 0, false
}
