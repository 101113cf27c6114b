package landing

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

// The code of a program may have hundreds of megabytes, but a request needs only a few functions. So a module keeps
// its file open instead of the code.

// block is a part of the code.
type block struct {
	begin uint64
	bytes []byte
}

const blockSize = 16 << 10

// Code returns a part of the code as it is in the file; less of it where the code or the file ends. A caller that
// keeps it for long copies it.
func (m *Module) Code(begin, end uint64) []byte {
	end = min(end, m.Size)
	if begin >= end {
		return nil
	}
	b := m.last.Load()
	if b == nil || begin < b.begin || end > b.begin+uint64(len(b.bytes)) {
		b = &block{begin: begin &^ (blockSize - 1)}
		b.bytes = make([]byte, min(max(end, b.begin+blockSize), m.Size)-b.begin)
		n, _ := m.file.ReadAt(b.bytes, int64(m.offset+b.begin))
		b.bytes = b.bytes[:n]
		if n <= 2*blockSize {
			m.last.Store(b)
		}
	}
	n := uint64(len(b.bytes))
	return slices.Clip(b.bytes[min(n, begin-b.begin):min(n, end-b.begin)])
}

// mapped calls do with the segments of the file. The file may be cut meanwhile, since it is the target's: what do
// can no longer read is an error.
func (m *Module) mapped(do func(s *scan) error) error {
	if isLocal(m.file) {
		return m.within(mapFile, do)
	}
	return m.within(read, do)
}

// within calls do with the segments of the file, as a function makes its bytes available.
func (m *Module) within(contents func(f *os.File, size int) ([]byte, func([]byte), error), do func(s *scan) error) error {
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	file, drop, err := contents(m.file, int(info.Size()))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(file) }()
	s := &scan{absolute: m.absolute, drop: drop}
	return readable(func() error {
		for _, p := range m.loaded {
			s.all = append(s.all, segment{p.Vaddr, file[p.Off : p.Off+p.Filesz]})
		}
		s.code = segment{m.addr, file[m.offset : m.offset+m.Size]}
		return do(s)
	})
}

// isLocal reports whether a file is of a file system in which no program and no server provides the pages of files.
// Where one does, a page fault may last as long as it likes, and a goroutine in a page fault stops the whole monitor
// when memory is collected. An overlay may have such a file system below.
func isLocal(f *os.File) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &fs)
	return err == nil && slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC}, fs.Type)
}

// mapFile maps a file. The pages of a part that is dropped are in memory again when they are looked at.
func mapFile(f *os.File, size int) (file []byte, drop func(part []byte), err error) {
	file, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	drop = func(part []byte) {
		begin := cap(file) - cap(part)
		_ = unix.Madvise(file[begin&^(page-1):begin+len(part)], unix.MADV_DONTNEED)
	}
	return file, drop, err
}

// read copies a file to memory outside of the heap, so that it can be given back at once.
func read(f *os.File, size int) (file []byte, drop func(part []byte), err error) {
	file, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	if n, err := f.ReadAt(file, 0); n < size {
		_ = unix.Munmap(file)
		return nil, nil, err
	}
	return file, func([]byte) {}, nil
}

// readable calls do, which reads a mapped file, and returns an error if the file is shorter than it was.
func readable(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file can no longer be read: %v", p)
		}
	}()
	return do()
}

var errNoCode = errors.New("the file has no such code")

const page = 0x1000

// place finds the code that is mapped from an offset in the file, among the segments.
func (m *Module) place(file *elf.File, offset, length uint64) error {
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		m.loaded = append(m.loaded, p.ProgHeader)
		if end := p.Off + p.Filesz; p.Flags&elf.PF_X != 0 && p.Off&^(page-1) <= offset && offset < end {
			m.offset, m.addr, m.Size = offset, p.Vaddr+offset-p.Off, min(end-offset, length)
		}
	}
	if m.Size == 0 {
		return errNoCode
	}
	return nil
}

// keep opens the file a second time, because it belongs to the caller.
func (m *Module) keep(f *os.File) error {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		m.file = os.NewFile(uintptr(fd), f.Name())
	}
	return err
}
