//go:build linux

package proc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process chooses the files that it maps, and their contents. In a mount namespace of
// its own it also chooses where a path leads: to a pipe that blocks a reader, or to a
// file that only the monitor may read. So the monitor opens a mapped file by the kernel's
// own link to it, if permitted, and never by its path without a check.

// OpenImage opens the file of a mapping. It blocks no longer than InTime, and opens only
// regular files.
func OpenImage(pid int, m Mapping) (*os.File, error) {
	return InTime(pid, m.Path, func() (*os.File, error) {
		f, err := openImage(pid, m)
		if err != nil {
			return nil, err
		}
		return Unblocked(f)
	})
}

func openImage(pid int, m Mapping) (*os.File, error) {
	f, err := openRegular(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End))
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	// These links require CAP_CHECKPOINT_RESTORE. Without it, a path gives the monitor
	// access only to files that its user can read anyway.
	main := fmt.Sprintf("/proc/%d/exe", pid)
	if path, err := os.Readlink(main); err == nil && path == m.Path {
		return openRegular(main)
	}
	if f, err = openRegular(fmt.Sprintf("/proc/%d/root%s", pid, m.Path)); err != nil {
		return nil, err
	}
	if !isFile(f, m.Inode) {
		f.Close()
		return nil, fmt.Errorf("%s is no longer the file that process %d has mapped", m.Path, pid)
	}
	return f, nil
}

// openRegular opens a regular file. It does not wait for a named pipe's writer, and
// closes devices unread.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// isFile reports whether a file has an inode number. On overlayfs it accepts any: there,
// the kernel prints the inode number of the lower layer.
func isFile(f *os.File, inode uint64) bool {
	var st unix.Stat_t
	var where unix.Statfs_t
	if unix.Fstat(int(f.Fd()), &st) != nil || unix.Fstatfs(int(f.Fd()), &where) != nil {
		return false
	}
	return st.Ino == inode || where.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// Limits of files that are read as programs. Real programs stay far below them.
const (
	mostSections = 1024
	mostNames    = 64 << 10  // bytes of section names
	mostLoaded   = 512 << 20 // bytes of a file's loaded segments
	leastLoaded  = 64 << 20  // bytes that may be holes of the file or compressed on the disk
	mostDense    = 8         // and this many times the file's size on the disk
)

// ReadELF reads the headers of a program or library. It compares the sizes that the
// headers claim with the size of the file, so that reading the segments takes no more
// memory than for real programs.
func ReadELF(r io.ReaderAt) (file *elf.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("it is damaged: %v", p)
		}
	}()
	if err := checkSections(r); err != nil {
		return nil, err
	}
	if file, err = elf.NewFile(r); err != nil {
		return nil, err
	}
	if f, ok := r.(*os.File); ok {
		err = checkSegments(f, file)
	}
	return file, err
}

func checkSegments(f *os.File, file *elf.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size, most := uint64(info.Size()), min(stored(info)+leastLoaded, mostLoaded)
	loaded, held := uint64(0), uint64(0)
	for _, s := range file.Progs {
		if s.Off > size || s.Filesz > size-s.Off {
			return errors.New("it ends within a segment")
		}
		if s.Type == elf.PT_LOAD {
			loaded += s.Filesz
		}
	}
	for _, s := range file.Sections {
		if s.Type == elf.SHT_NOBITS || isDebug(s) {
			continue
		}
		if s.Flags&elf.SHF_COMPRESSED != 0 || s.Offset > size || s.FileSize > size-s.Offset {
			return fmt.Errorf("its section %q is compressed, or not in the file", s.Name)
		}
		held += s.FileSize
	}
	if max(loaded, held) > most {
		return fmt.Errorf("it claims %d bytes, of which %d can be believed", max(loaded, held), most)
	}
	return nil
}

// stored returns the greatest plausible number of data bytes in a file according to its
// disk blocks, which may be compressed.
func stored(info fs.FileInfo) uint64 {
	size := uint64(info.Size())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		size = min(size, uint64(st.Blocks)*512*mostDense)
	}
	return size
}

// isDebug reports whether a section contains debug information.
func isDebug(s *elf.Section) bool {
	return strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_")
}

// CheckSymbols returns an error if the names of a file's symbols are together much longer
// than the string tables: symbols may share a name or the end of one, and a reader copies
// each.
func CheckSymbols(file *elf.File) error {
	const size, times, anyhow = elf.Sym64Size, 8, 16 << 20
	for _, s := range file.Sections {
		if s.Type != elf.SHT_SYMTAB && s.Type != elf.SHT_DYNSYM || int(s.Link) >= len(file.Sections) {
			continue
		}
		table, err := s.Data()
		if err != nil {
			return err
		}
		names, err := file.Sections[s.Link].Data()
		if err != nil {
			return err
		}
		for total := 0; len(table) >= size; table = table[size:] {
			at := binary.LittleEndian.Uint32(table)
			if uint64(at) >= uint64(len(names)) {
				continue
			}
			if total += max(bytes.IndexByte(names[at:], 0), 0); total > times*len(names)+anyhow {
				return errors.New("the names of its symbols overlap beyond reason")
			}
		}
	}
	return nil
}

// checkSections limits the memory that debug/elf needs for the names of sections: it copies the
// name of each section.
func checkSections(r io.ReaderAt) error {
	var h [64]byte
	if _, err := r.ReadAt(h[:], 0); err != nil || string(h[:4]) != elf.ELFMAG || h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB) {
		return errors.New("it is not a program for this machine")
	}
	le := binary.LittleEndian
	at, number, names := le.Uint64(h[40:]), le.Uint16(h[60:]), le.Uint16(h[62:])
	if at == 0 {
		return nil
	}
	var sh [64]byte
	if number == 0 || number > mostSections || names >= number || at > 1<<62 {
		return fmt.Errorf("it has a damaged table of %d sections", number)
	}
	if _, err := r.ReadAt(sh[:], int64(at)+64*int64(names)); err != nil || le.Uint64(sh[32:]) > mostNames {
		return errors.New("it has damaged names of sections")
	}
	return nil
}

// Files opens mapped files of a process by the paths in its mappings.
type Files struct {
	pid  int
	maps Mappings
}

// FilesOf returns the Files of a process.
func FilesOf(pid int) (Files, error) {
	maps, err := Maps(pid)
	return Files{pid, maps}, err
}

// Open opens the file of the first mapping with a path.
func (f Files) Open(path string) (*os.File, error) {
	for _, m := range f.maps {
		if m.Path == path && m.Inode != 0 {
			return OpenImage(f.pid, m)
		}
	}
	return nil, fmt.Errorf("process %d no longer has %s mapped", f.pid, path)
}
