package safedwarf

import (
	"bytes"
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Limits of what is read from one file. Compression makes debug information about four times
// smaller; a file that claims more than mostRatio times its stored bytes plus atLeast, or more than
// mostBytes, is refused.
const (
	mostRatio = 20
	atLeast   = 16 << 20
	mostBytes = 1 << 30
)

// MostInUse limits the debug information in memory, of all files together.
const MostInUse = 1 << 30

// inUse is a property of the process, as its memory is.
var inUse atomic.Int64

// ErrBudget is the error of Open while the debug information of other files fills the memory
// that all files may take. A later call can succeed.
var ErrBudget = errors.New("the debug information of other files takes all the memory there is for it")

// errNone is the error about files without debug information.
var errNone = errors.New("the file has no debug information")

// Data is the debug information of a file.
type Data struct {
	dwarf    *dwarf.Data
	sections map[string][]byte
	scans    *scans
	reserved int64
	release  runtime.Cleanup
}

// sections are the ones that Open reads. The first three must exist.
var sections = []string{".debug_abbrev", ".debug_info", ".debug_str", ".debug_line", ".debug_ranges",
	".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"}

const firstAdded = 5 // index in sections of the first one that is not a parameter of dwarf.New

// Size returns how much memory the debug information of a file takes, or an error if the
// file has none, or claims more than its content can explain.
func Size(r io.ReaderAt, file *elf.File) (int64, error) {
	total, held := uint64(0), uint64(0)
	for _, s := range present(file) {
		total += min(s.Size, mostBytes+1)
		held += min(s.FileSize, mostBytes)
	}
	if file.Section(sections[0]) == nil || file.Section(sections[1]) == nil {
		return 0, errNone
	}
	if total > min(mostBytes, mostRatio*min(held, stored(r))+atLeast) {
		return 0, fmt.Errorf("the file claims %d bytes of debug information, and stores %d", total, min(held, stored(r)))
	}
	return int64(total), nil
}

// present returns the sections that a file has.
func present(file *elf.File) map[string]*elf.Section {
	found := make(map[string]*elf.Section)
	for _, name := range sections {
		if s := file.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			found[name] = s
		}
	}
	return found
}

// stored returns the bytes that r stores on a disk: a file may have holes.
func stored(r io.ReaderAt) uint64 {
	f, ok := r.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return math.MaxInt64 / mostRatio
	}
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return Stored(info)
}

// Stored returns an upper bound for the data in a file according to its disk blocks, which
// the file system may compress. The blocks of a small file may not be allocated yet.
func Stored(info fs.FileInfo) uint64 {
	const block, compressed, small = 512, 8, 16 << 20
	size := uint64(info.Size())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		size = min(size, uint64(st.Blocks)*block*compressed+small)
	}
	return size
}

// Open reads the debug information of an ELF file, whose content is r. It counts for the
// budget until Close is called or the Data is garbage collected.
func Open(ctx context.Context, r io.ReaderAt, file *elf.File) (*Data, error) {
	size, err := Size(r, file)
	if err != nil {
		return nil, err
	}
	d := &Data{scans: &scans{}, reserved: size}
	if inUse.Add(size) > MostInUse {
		inUse.Add(-size)
		return nil, ErrBudget
	}
	d.release = runtime.AddCleanup(d, func(size int64) { inUse.Add(-size) }, size)
	if err := d.read(ctx, file); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close returns the memory to the budget. The Data must not be used afterwards.
func (d *Data) Close() {
	d.release.Stop()
	inUse.Add(-d.reserved)
	*d = Data{}
}

func (d *Data) read(ctx context.Context, file *elf.File) (err error) {
	d.sections = make(map[string][]byte)
	for name, s := range present(file) {
		if d.sections[name], err = readSection(ctx, s); err != nil {
			return err
		}
	}
	if err := d.check(ctx); err != nil {
		return err
	}
	part := func(i int) []byte { return d.sections[sections[i]] }
	d.dwarf, err = dwarf.New(part(0), nil, nil, part(1), part(3), nil, part(4), part(2))
	if err != nil {
		return err
	}
	for _, name := range sections[firstAdded:] {
		if err := d.dwarf.AddSection(name, d.sections[name]); err != nil {
			return err
		}
	}
	return nil
}

// readSection reads a section, of which no more is decompressed than its header says.
func readSection(ctx context.Context, s *elf.Section) ([]byte, error) {
	const step, some = 1 << 20, 64 << 20
	from := s.Open()
	var out bytes.Buffer
	out.Grow(int(min(s.Size, some)))
	for left := int64(s.Size); left > 0; left -= step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n, err := io.CopyN(&out, from, min(left, step)); err == io.EOF && n > 0 {
			break
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the section %s: %w", s.Name, err)
		}
	}
	return out.Bytes(), nil
}
