//go:build linux

// Package sealed opens and seals memory files (memfd_create) that a target process has
// made. The target, and other processes that share its descriptors, may replace such a
// file by another one, or truncate it after the monitor has mapped it (SIGBUS). So the
// package opens or changes nothing before it knows that it is a memory file; and a file
// may be mapped only after its size was checked in the sealed state.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions may
// be called from any goroutine.
package sealed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Seals are the seals of a file to map: they fix its size and the set of seals.
const Seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// errOther is the error for anything but a memory file.
var errOther = errors.New("the process has replaced the memory file that it should share")

// Open opens a memory file for reading and writing by a path in /proc. It does not open
// any other file, because that could block or have side effects.
func Open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &stat), unix.Fstatfs(fd, &fs)); err != nil {
		return nil, err
	}
	// Files of huge pages are in another file system: an access to them may fault.
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 0 || fs.Type != unix.TMPFS_MAGIC {
		return nil, errOther
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	// A deleted file of an ordinary tmpfs has the seal F_SEAL_SEAL from the beginning.
	if seals, err := sealsOf(f); err != nil || seals != 0 && seals != Seals {
		f.Close()
		return nil, errors.Join(errOther, err)
	}
	return f, nil
}

// sealsOf returns the seals of a file except F_SEAL_EXEC, which the kernel adds to each
// new file if the sysctl vm.memfd_noexec is set.
func sealsOf(f *os.File) (int, error) {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return seals &^ unix.F_SEAL_EXEC, err
}

// Fresh returns an error if a file is sealed or not empty, and so was not made just now.
func Fresh(f *os.File) error {
	seals, err := sealsOf(f)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if seals != 0 || info.Size() != 0 {
		return errOther
	}
	return nil
}

// Seal seals a file, and then checks its size.
func Seal(f *os.File, size int64) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, Seals); err != nil {
		return fmt.Errorf("cannot seal the shared memory: %w", err)
	}
	return Check(f, size)
}

// Check returns an error unless a file is sealed and has the given size.
func Check(f *os.File, size int64) error {
	seals, err := sealsOf(f)
	if err != nil {
		return fmt.Errorf("cannot read the seals of the shared memory: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case seals != Seals:
		return fmt.Errorf("the shared memory has the seals %#x, and not %#x: its process could truncate it", seals, Seals)
	case info.Size() != size:
		return fmt.Errorf("the shared memory has %d bytes, and not %d", info.Size(), size)
	}
	return nil
}
