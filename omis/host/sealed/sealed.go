//go:build linux

// Package sealed opens files of memory (memfd_create) that a target process has made, and
// seals them. The target, and others that share its descriptors, may put another file in the
// place of such a file, or make it shorter under the feet of a monitor that has mapped it
// (SIGBUS). So nothing is opened, and nothing changed, before it is known to be a file of
// memory; and a file is good for a mapping only when its size was checked after it was
// sealed.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions may be called from any
// goroutine.
package sealed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Seals are those of a file that is mapped: its size stays, and nobody adds another.
const Seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// errOther is returned for what is no file of memory.
var errOther = errors.New("the process has put something else in the place of the memory that it was to share")

// Open opens a file of memory for reading and writing, by a path in /proc. A file of another
// kind is not opened: that alone may block, or change something.
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
	// Files of huge pages are in another file system: to touch them may fault.
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 0 || fs.Type != unix.TMPFS_MAGIC {
		return nil, errOther
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	// A file of a tmpfs that was deleted has the seal F_SEAL_SEAL from its beginning.
	if seals, err := sealsOf(f); err != nil || seals != 0 && seals != Seals {
		f.Close()
		return nil, errors.Join(errOther, err)
	}
	return f, nil
}

// sealsOf returns the seals of a file, without the one that says that it is no program: the
// kernel adds that to each new file where the sysctl vm.memfd_noexec is set.
func sealsOf(f *os.File) (int, error) {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return seals &^ unix.F_SEAL_EXEC, err
}

// Fresh returns an error if a file was sealed, or has anything in it: then it is none that
// was made just now.
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

// Seal seals a file, and checks then that it has a size.
func Seal(f *os.File, size int64) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, Seals); err != nil {
		return fmt.Errorf("cannot seal the shared memory: %w", err)
	}
	return Check(f, size)
}

// Check returns an error unless a file is sealed and has a size.
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
		return fmt.Errorf("the shared memory has the seals %#x, and not %#x: its process could take it away", seals, Seals)
	case info.Size() != size:
		return fmt.Errorf("the shared memory has %d bytes, and not %d", info.Size(), size)
	}
	return nil
}
