package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// files are the open files. Several probes may deliver to one file.
type files struct {
	mu   sync.Mutex
	list map[string]*file
}

// file is a sink that appends documents to a file, one on each line. A processing instruction
// before the document says which one it is:
//
//	<?mirador probe="probe-1" number="17" lost="0"?><measurement …/>
type file struct {
	all      *files
	key      string
	users    int // guarded by files.mu
	path     string
	user     User
	rotation rotation

	mu      sync.Mutex
	f       *os.File
	since   time.Time // when the file was opened
	checked time.Time // when the path was last compared with the open file
}

// open opens a file for one more probe.
func (all *files) open(a Address, u User) (*file, error) {
	r, err := readRotation(a.url.Query())
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%d %s", u.UID, a.URI)
	all.mu.Lock()
	f := all.list[key]
	if f == nil && all.count(u) >= mostFiles {
		all.mu.Unlock()
		return nil, fmt.Errorf("measurements of this user are delivered to %d files already; several probes may deliver to one file", mostFiles)
	}
	if f == nil {
		f = &file{all: all, key: key, path: a.url.Path, user: u, rotation: r}
		if all.list == nil {
			all.list = make(map[string]*file)
		}
		all.list[key] = f
	}
	f.users++
	all.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil { // the client should learn now that the file cannot be written
		if err := f.open(); err != nil {
			f.leave()
			return nil, err
		}
	}
	return f, nil
}

// mostFiles limits the files of a user, because they take descriptors of the gateway.
const mostFiles = 256

// count returns the number of files of a user. The caller holds mu.
func (all *files) count(u User) (n int) {
	for _, f := range all.list {
		if f.user == u {
			n++
		}
	}
	return n
}

// close ends the use of the file by one probe. The call for the last probe closes the file.
func (f *file) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
}

// leave is close for a caller that holds mu.
func (f *file) leave() {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(f.all.list, f.key)
		f.shut()
	}
}

func (f *file) write(_ context.Context, items []item) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n < len(items) && err == nil {
		var written int
		written, err = f.append(items[n:])
		n += written
	}
	return n, err
}

// mostTogether limits the bytes that are written in one system call.
const mostTogether = 1 << 20

// append writes the lines of some documents in one system call, so that the lines of several
// writers do not mix: as many as fit before the file is rotated. Nothing remains of a line
// that does not fit on the disk.
func (f *file) append(items []item) (n int, err error) {
	lines := items[0].appendLine(nil)
	room, err := f.ready(int64(len(lines)))
	if err != nil {
		return 0, err
	}
	for n = 1; n < len(items); n++ {
		before := len(lines)
		if lines = items[n].appendLine(lines); int64(len(lines)) > room {
			lines = lines[:before]
			break
		}
	}
	before, err := f.f.Seek(0, 2)
	if err != nil {
		return 0, err
	}
	written, err := unix.Write(int(f.f.Fd()), lines)
	if err == nil && written < len(lines) {
		err = unix.ENOSPC
	}
	if err == nil && f.rotation.sync {
		if err = f.f.Sync(); err != nil {
			written = 0 // the documents are written again, with the same numbers
		}
	}
	if err == nil {
		return n, nil
	}
	whole := 0
	if written > 0 { // it is -1 after an error
		whole = bytes.LastIndexByte(lines[:written], '\n') + 1
		err = errors.Join(err, f.f.Truncate(before+int64(whole)))
	}
	return bytes.Count(lines[:whole], []byte("\n")), fmt.Errorf("cannot write to %s: %w", f.path, err)
}

// appendLine appends the line of a document.
func (i *item) appendLine(line []byte) []byte {
	line = strconv.AppendQuote(append(line, "<?mirador probe="...), i.Probe)
	line = strconv.AppendInt(append(line, ` number="`...), i.Number, 10)
	line = strconv.AppendInt(append(line, `" lost="`...), i.Lost, 10)
	return append(append(append(line, `"?>`...), i.Text...), '\n')
}

// checkEvery is the time after which another file may have the path: programs that rotate
// files rename them.
const checkEvery = 5 * time.Second

// ready opens the file if necessary, and rotates it if it is too old or would become too
// large. It returns how much may be written at once.
func (f *file) ready(more int64) (room int64, err error) {
	if now := time.Now(); f.f != nil && now.Sub(f.checked) > checkEvery {
		f.checked = now
		if !f.isThere() {
			f.shut()
		}
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	st, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	full := f.rotation.size > 0 && st.Size()+more > f.rotation.size
	old := f.rotation.age > 0 && time.Since(f.since) > f.rotation.age
	size := st.Size()
	if size > 0 && (full || old) {
		if _, err := as(f.user, f.shift, func(struct{}) {}); err != nil {
			return 0, err
		}
		f.shut()
		if err := f.open(); err != nil {
			return 0, err
		}
		size = 0
	}
	if f.rotation.size > 0 {
		return min(f.rotation.size-size, mostTogether), nil
	}
	return mostTogether, nil
}

// isThere reports whether the path still names the open file.
func (f *file) isThere() bool {
	now, err := f.f.Stat()
	if err != nil {
		return false
	}
	named, err := as(f.user, func() (os.FileInfo, error) { return os.Lstat(f.path) }, func(os.FileInfo) {})
	return err == nil && os.SameFile(now, named)
}

// open opens the file for appending, and creates it if necessary. No part of the path may be
// a symbolic link, because another user could have made it lead to a file of this user.
func (f *file) open() error {
	opened, err := as(f.user, f.openFile, func(late *os.File) { late.Close() })
	if err != nil {
		return err
	}
	f.f = opened
	if err := f.check(); err != nil {
		f.shut()
		return err
	}
	f.since, f.checked = time.Now(), time.Now()
	return nil
}

func (f *file) openFile() (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, f.path, &unix.OpenHow{
		Flags: unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Mode:  0o600, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("cannot open %s: a part of the path is a symbolic link; give the path that it leads to", f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", f.path, err)
	}
	return os.NewFile(uintptr(fd), f.path), nil
}

// check refuses files that could hold the writer up, and files of other users, to which
// anybody may have made a hard link.
func (f *file) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s is no regular file", f.path)
	}
	if uid, err := f.user.uid(); err != nil || int(st.Uid) != uid {
		return fmt.Errorf("%s belongs to user %d; measurements are appended only to files of the user who asks for them", f.path, st.Uid)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.f.Fd()), &fs); err != nil {
		return err
	}
	if fs.Type == unix.FUSE_SUPER_MAGIC {
		return fmt.Errorf("%s is in a file system of another program (FUSE), which could hold the gateway up", f.path)
	}
	return nil
}

// shift renames the file to .1, .1 to .2 and so on.
func (f *file) shift() (none struct{}, err error) {
	name := func(i int) string { return f.path + "." + strconv.Itoa(i) }
	for i := f.rotation.keep; i > 1; i-- {
		if err := os.Rename(name(i-1), name(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return none, err
		}
	}
	return none, os.Rename(f.path, name(1))
}

func (f *file) shut() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
}
