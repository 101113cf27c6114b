//go:build linux

package proc

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// query is one use of a Reader, about one process.
type query struct {
	r   *Reader
	k   *kept
	buf *[]byte
}

// ask begins a query; done or end must follow.
func (r *Reader) ask(p omis.ProcID) (query, error) {
	k, err := r.hold(p)
	if err != nil {
		return query{}, err
	}
	return query{r, k, r.buffers.Get().(*[]byte)}, nil
}

func (q query) done() {
	q.r.buffers.Put(q.buf)
	q.r.release(q.k)
}

// end finishes a query and checks that the process still exists: only then are results
// valid that were read by its number.
func (q query) end(err error) error {
	gone := !q.k.alive()
	q.done()
	if gone {
		q.r.Forget(q.k.id)
		return ended(q.k.id.PID)
	}
	return err
}

// alive reports whether the process has a thread; a zombie has none.
func (k *kept) alive() bool {
	fds := [1]unix.PollFd{{Fd: int32(k.pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds[:], 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 0
		}
	}
}

// read reads a file of the process. The text is valid until the next read.
func (q query) read(id fileID) ([]byte, error) {
	for reopened := false; ; {
		fd, keep, err := q.r.file(q.k, id)
		if err != nil {
			return nil, err
		}
		n, err := unix.Pread(fd, *q.buf, 0)
		switch {
		case !keep:
			unix.Close(fd)
		case err != nil:
			q.r.discard(q.k, id, fd)
		}
		switch {
		case err == nil && n < len(*q.buf):
			return (*q.buf)[:n], nil
		case err == nil: // There may be more. Read all of it again, because a second piece might not match the first.
			*q.buf = make([]byte, 2*len(*q.buf))
		case reopened || id.tid == 0 || !isErrno(err, unix.ESRCH):
			return nil, err
		default:
			reopened = true // the process may have a new thread with this number
		}
	}
}

// file finds or opens a file. If keep is false, the caller must close it.
func (r *Reader) file(k *kept, id fileID) (fd int, keep bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fd, ok := k.files[id]; ok {
		return fd, true, nil
	}
	r.room(1)
	fd, err = k.openFile(id.path())
	if exhausted(err) {
		r.room(r.most)
		fd, err = k.openFile(id.path())
	}
	if err != nil || k.gone || r.open >= r.most {
		return fd, false, err
	}
	k.files[id] = fd
	r.open++
	return fd, true, nil
}

// discard removes a file that cannot be read any more; release closes it when no caller
// uses it.
func (r *Reader) discard(k *kept, id fileID, fd int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept, ok := k.files[id]; ok && kept == fd {
		delete(k.files, id)
		k.stale = append(k.stale, fd)
	}
}

// keepThreads discards the files of threads that are not among tids.
func (r *Reader) keepThreads(k *kept, tids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(k.tids, tids) {
		return // unchanged since the last call
	}
	k.tids = tids
	for id, fd := range k.files {
		if id.tid == 0 {
			continue
		}
		if _, there := slices.BinarySearch(tids, id.tid); !there {
			delete(k.files, id)
			k.stale = append(k.stale, fd)
		}
	}
}

// open opens a file that the Reader does not keep.
func (q query) open(path string) (fd int, err error) {
	if fd, err = q.k.openFile(path); exhausted(err) {
		q.r.mu.Lock()
		q.r.room(q.r.most)
		q.r.mu.Unlock()
		fd, err = q.k.openFile(path)
	}
	return fd, err
}

func (k *kept) openFile(path string) (int, error) {
	return unix.Openat(k.dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// content reads a file that the Reader does not keep open. If a file shows memory, such
// as environ, its descriptor shows the memory that the process had when it was opened,
// whatever the process has executed since.
func (q query) content(path string) ([]byte, error) {
	fd, err := q.open(path)
	if err != nil {
		return nil, err
	}
	return readAll(fd, path)
}

// readAll reads a descriptor to its end, and closes it.
func readAll(fd int, path string) ([]byte, error) {
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return io.ReadAll(f)
}

// threads lists the threads in ascending order.
func (q query) threads() ([]int, error) {
	fd, err := q.open("task")
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return numbered(fd, *q.buf)
}

// numbered lists the entries of a directory whose names are numbers, in ascending order.
func numbered(dir int, buf []byte) ([]int, error) {
	list := make([]int, 0, len(buf)/int(unsafe.Sizeof(unix.Dirent{})))
	for {
		n, err := unix.ReadDirent(dir, buf)
		if n == 0 || err != nil {
			slices.Sort(list)
			return list, err
		}
		for entries := buf[:n]; len(entries) > 0; {
			const size, name = unsafe.Offsetof(unix.Dirent{}.Reclen), unsafe.Offsetof(unix.Dirent{}.Name)
			if '1' <= entries[name] && entries[name] <= '9' {
				list = append(list, int(Number(entries[name:])))
			}
			entries = entries[binary.NativeEndian.Uint16(entries[size:]):]
		}
	}
}

// readError makes an error for users; the process may simply have ended.
func readError(pid int, err error) error {
	var typed *omis.Error
	switch {
	case errors.As(err, &typed):
		return err
	case errors.Is(err, os.ErrPermission):
		return omis.Errorf(omis.NoPermission, "cannot read about process %d: %w", pid, err)
	case vanished(err):
		return ended(pid)
	case exhausted(err):
		return omis.Errorf(omis.OSError, "cannot read about process %d: %w; the monitor needs a higher limit of open files (ulimit -n)", pid, err)
	}
	return omis.Errorf(omis.OSError, "cannot read about process %d: %w", pid, err)
}

// vanished reports whether the error means that the process, thread or file does not
// exist: ENOENT when opening, ESRCH when reading an open file, EINVAL from a CPU clock.
func vanished(err error) bool {
	return errors.Is(err, os.ErrNotExist) || isErrno(err, unix.ESRCH) || isErrno(err, unix.EINVAL)
}

func isErrno(err error, e unix.Errno) bool { return errors.Is(err, e) }
