package binary

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Opener opens a file by its path.
type Opener func(path string) (File, error)

// FromDisk opens a path in the file system of this process.
func FromDisk(path string) (File, error) { return openRegular(path) }

// openRegular opens only regular files: opening a named pipe blocks until another process
// opens it, and opening a device may have side effects.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &FormatError{path, "not a regular file"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// FromProcess opens files that process pid has mapped, even if they were replaced or deleted,
// and the vdso, which has no file. It neither stops nor traces the process.
//
// The process controls what it maps and, in a mount namespace of its own, what a path refers
// to. So FromProcess opens a file by the kernel's link to the mapping instead of its path, if
// permissions allow that, and refuses files that are not mapped.
func FromProcess(pid int) Opener {
	return func(path string) (File, error) {
		proc := fmt.Sprintf("/proc/%d", pid)
		path = strings.TrimSuffix(path, deleted)
		m, err := findMapping(proc, path)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, &fs.PathError{Op: fmt.Sprintf("process %d has not mapped", pid), Path: path, Err: fs.ErrNotExist}
		}
		if m.path == vdso {
			return openVDSO(proc, m)
		}
		return openMapped(pid, proc, m)
	}
}

const (
	deleted = " (deleted)"
	vdso    = "[vdso]"
)

// mapping is the first mapping of a file.
type mapping struct {
	low, high uint64
	inode     uint64
	path      string // as the kernel prints it, including " (deleted)"
}

func findMapping(proc, path string) (*mapping, error) {
	if strings.HasPrefix(path, "linux-vdso.so") { // its name in the list of loaded objects
		path = vdso
	}
	f, err := os.Open(proc + "/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return scanMappings(f, path)
}

func scanMappings(r io.Reader, path string) (*mapping, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok && strings.TrimSuffix(m.path, deleted) == path {
			return &m, nil
		}
	}
	return nil, lines.Err()
}

// parseMapping parses a line of /proc/PID/maps: "low-high perms offset dev inode path". Only
// the last field may contain blanks.
func parseMapping(line string) (m mapping, ok bool) {
	var fields [5]string
	rest := line
	for i := range fields {
		fields[i], rest, ok = strings.Cut(strings.TrimLeft(rest, " "), " ")
		if !ok {
			return m, false
		}
	}
	low, high, ok := strings.Cut(fields[0], "-")
	var err1, err2, err3 error
	m.low, err1 = strconv.ParseUint(low, 16, 64)
	m.high, err2 = strconv.ParseUint(high, 16, 64)
	m.inode, err3 = strconv.ParseUint(fields[4], 10, 64)
	m.path = strings.TrimLeft(rest, " ")
	return m, ok && err1 == nil && err2 == nil && err3 == nil && m.path != ""
}

// openMapped opens the mapped file by the kernel's link. Without the capability for that, it
// opens the path if it still refers to the mapped file. It can then read no more than the user
// who started this process.
func openMapped(pid int, proc string, m *mapping) (File, error) {
	link, err := openRegular(fmt.Sprintf("%s/map_files/%x-%x", proc, m.low, m.high))
	if err == nil {
		return link, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		if exe, err := os.Readlink(proc + "/exe"); err == nil && exe == m.path {
			return openRegular(proc + "/exe")
		}
		if f, err := openRegular(proc + "/root" + m.path); err == nil {
			if sameFile(f, m.inode) {
				return f, nil
			}
			f.Close()
		}
	}
	return nil, &ReplacedError{PID: pid, Path: strings.TrimSuffix(m.path, deleted), Err: err}
}

// sameFile compares inodes. On overlayfs the kernel prints the inode of the lower layer, so
// the comparison is meaningless there and sameFile trusts the path.
func sameFile(f *os.File, inode uint64) bool {
	const overlayfs = 0x794c7630
	var where syscall.Statfs_t
	if syscall.Fstatfs(int(f.Fd()), &where) == nil && where.Type == overlayfs {
		return true
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Ino == inode
}

// openVDSO copies the vdso, an ELF file of a few pages, from the process.
func openVDSO(proc string, m *mapping) (File, error) {
	const most = 1 << 20
	if m.high-m.low > most {
		return nil, &FormatError{vdso, fmt.Sprintf("it claims %d bytes", m.high-m.low)}
	}
	mem, err := os.Open(proc + "/mem")
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	b := make([]byte, m.high-m.low)
	if _, err := mem.ReadAt(b, int64(m.low)); err != nil {
		return nil, err
	}
	return memoryFile{bytes.NewReader(b)}, nil
}

// memoryFile is a file that exists only in memory.
type memoryFile struct{ *bytes.Reader }

func (m memoryFile) Stat() (fs.FileInfo, error) { return memoryInfo{m.Size()}, nil }

type memoryInfo struct{ size int64 }

func (i memoryInfo) Name() string       { return vdso }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return 0o444 }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return false }
func (i memoryInfo) Sys() any           { return nil }

var (
	_ File = (*os.File)(nil)
	_ File = memoryFile{}
)
