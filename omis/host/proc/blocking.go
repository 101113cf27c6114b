//go:build linux

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The server of a user's file system (FUSE) may never answer: a thread that opens or reads one of
// its files can then block for ever, even after SIGKILL. So a separate goroutine opens the files of
// targets, and copies the files of such file systems.
const (
	longestOpen = 2 * time.Second
	// mostBlocked limits the threads that are blocked.
	mostBlocked = 32
	// longestBlocked is how long the other files of a process count as blocked after one was.
	longestBlocked = 10 * time.Second
	mostCopy       = 64 << 20  // bytes of a copy
	mostCopies     = 256 << 20 // bytes of all copies
)

// BlockedError reports that a file could not be opened and read in time.
type BlockedError struct{ Path string }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("cannot read %s: its file system does not answer", e.Path)
}

// The threads, the memory, and the processes whose files are blocked are of this process.
var (
	opening = make(chan struct{}, mostBlocked)
	copied  atomic.Int64
	blocked sync.Map // of times, by pid
)

// InTime calls open, which opens a file of a process, and returns its result, or a
// *BlockedError if that takes too long. open must pass the file to Unblocked.
func InTime[T any](pid int, path string, open func() (T, error)) (none T, err error) {
	if since, ok := blocked.Load(pid); ok {
		if time.Since(since.(time.Time)) < longestBlocked {
			return none, &BlockedError{path}
		}
		blocked.Delete(pid)
	}
	select {
	case opening <- struct{}{}:
	default:
		return none, &BlockedError{path}
	}
	type result struct {
		f   T
		err error
	}
	results := make(chan result)
	late := make(chan struct{})
	go func() {
		defer func() { <-opening }()
		f, err := open()
		select {
		case results <- result{f, err}:
		case <-late:
			if c, ok := any(f).(io.Closer); ok && err == nil {
				c.Close()
			}
		}
	}()
	timer := time.NewTimer(longestOpen)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.f, r.err
	case <-timer.C:
		close(late)
		blocked.Store(pid, time.Now())
		return none, &BlockedError{path}
	}
}

// Unblocked returns a file that does not block its readers: a copy in memory of a file of a
// user's file system, and other files as they are.
func Unblocked(f *os.File) (*os.File, error) {
	var where unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &where); err != nil || where.Type != unix.FUSE_SUPER_MAGIC {
		return f, err
	}
	defer f.Close()
	fd, err := unix.MemfdCreate("mirador-copy", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	to := os.NewFile(uintptr(fd), f.Name())
	n, err := io.CopyN(to, f, mostCopy)
	if errors.Is(err, io.EOF) {
		if copied.Add(n) <= mostCopies {
			runtime.AddCleanup(to, func(n int64) { copied.Add(-n) }, n)
			return to, nil
		}
		copied.Add(-n)
		err = nil
	}
	to.Close()
	if err == nil {
		err = fmt.Errorf("%s is too large to be copied from its file system", f.Name())
	}
	return nil, err
}
