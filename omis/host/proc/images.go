package proc

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Version identifies one version of a file.
type Version struct {
	dev, inode  uint64
	size, mtime int64
}

// VersionOf returns the version of an open file.
func VersionOf(f *os.File) (Version, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Version{}, err
	}
	return Version{st.Dev, st.Ino, st.Size, st.Mtim.Nano()}, nil
}

// Images caches what a caller found out about mapped parts of files, so that it reads
// each part once for all processes. It may be used from any goroutine.
type Images[T any] struct {
	mu    sync.Mutex
	known map[part]*found[T]
	bytes uint64 // sum over all cached parts
}

// Limits of Images: a process can map any number of files.
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

// Of returns what read finds out about the part of a file that is mapped at m. It does
// not cache a failure; a panic of read, which a malformed file can cause, is a failure.
// Callers that ask for another part do not wait.
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

// enter finds or adds a part. If the cache is full, it first drops all other parts.
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
