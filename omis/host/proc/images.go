package proc

import (
	"fmt"
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
	known map[part]*found[T]
	bytes uint64 // of all parts that are known
}

// Bounds of Images: a process can map as many files as it likes.
const (
	mostImages = 1 << 10
	mostBytes  = 1 << 30
)

type part struct {
	Version
	offset, length uint64
}

type found[T any] struct {
	once  sync.Once
	value T
	err   error
}

// Of is what read finds out about the part of a file that is mapped at m. A failure
// is not kept; a panic of read, which files can lead to that make no sense, is one. Nobody
// waits who asks for another part.
func (i *Images[T]) Of(f *os.File, m Mapping, read func() (T, error)) (T, error) {
	version, err := VersionOf(f)
	if err != nil {
		var none T
		return none, err
	}
	id := part{version, m.Offset, m.End - m.Start}
	one := i.enter(id)
	one.once.Do(func() {
		defer func() {
			if p := recover(); p != nil {
				one.err = fmt.Errorf("%s is damaged: %v", m.Path, p)
			}
		}()
		one.value, one.err = read()
	})
	if one.err != nil {
		i.forget(id, one)
	}
	return one.value, one.err
}

// enter finds a part, or makes one that is to be read. Where there are too many, all others go.
func (i *Images[T]) enter(id part) *found[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	if one := i.known[id]; one != nil {
		return one
	}
	size := min(id.length, mostLoaded)
	if i.known == nil || len(i.known) == mostImages || i.bytes+size > mostBytes {
		i.known, i.bytes = make(map[part]*found[T]), 0
	}
	one := new(found[T])
	i.known[id] = one
	i.bytes += size
	return one
}

func (i *Images[T]) forget(id part, one *found[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known[id] == one {
		delete(i.known, id)
		i.bytes -= min(id.length, mostLoaded)
	}
}
