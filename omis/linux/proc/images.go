package proc

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Version tells one version of a file from every other file.
type Version struct {
	dev, inode  uint64
	size, mtime int64
}

// VersionOf is that of an open file.
func VersionOf(f *os.File) (Version, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Version{}, err
	}
	return Version{st.Dev, st.Ino, st.Size, st.Mtim.Nano()}, nil
}

// Images keeps what was found out about mapped parts of files, each of which is read
// once, in whatever process it is. It may be used from any goroutine.
type Images[T any] struct {
	mu    sync.Mutex
	known map[part]T
}

type part struct {
	Version
	offset, length uint64
}

// Of is what read finds out about the part of a file that is mapped at m. A failure
// is not kept.
func (i *Images[T]) Of(f *os.File, m Mapping, read func() (T, error)) (T, error) {
	version, err := VersionOf(f)
	if err != nil {
		var none T
		return none, err
	}
	id := part{version, m.Offset, m.End - m.Start}
	i.mu.Lock()
	defer i.mu.Unlock()
	if found, ok := i.known[id]; ok {
		return found, nil
	}
	found, err := read()
	if err == nil {
		if i.known == nil {
			i.known = make(map[part]T)
		}
		i.known[id] = found
	}
	return found, err
}
