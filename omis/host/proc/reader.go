//go:build linux

package proc

import (
	"container/list"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// Reader reads about processes and threads repeatedly. Opening a file of /proc costs more
// than reading it, so a Reader keeps files open: those of the most recently used
// processes, up to a limit.
//
// An open file belongs to its process forever: after the end of the process, reading
// fails with ESRCH even if a new process has its number.
//
// Its methods may be called from any goroutine; no caller waits for another one's
// reading.
type Reader struct {
	buffers sync.Pool
	most    int // limit of descriptors
	crowd   crowd

	mu     sync.Mutex
	procs  map[omis.ProcID]*kept
	order  list.List // of *kept, the most recently used first
	open   int       // number of descriptors
	closed bool
}

// kept holds the descriptors of one process. The Reader's lock guards it.
type kept struct {
	id    omis.ProcID
	dir   int // its directory in /proc
	pidfd int
	files map[fileID]int
	stale []int // of ended threads
	tids  []int // threads as last listed; never modified
	// systems holds the system times of the threads that were last returned, so that none
	// decreases: see query.neverLess.
	systems map[instance]uint64
	system  int64 // the same for the whole process, in ticks: see query.notLess
	users   int   // number of queries in progress
	gone    bool  // removed from the Reader's table; the last user closes it
	at      *list.Element
}

// fileID identifies a file of a process, or of a thread if tid is not 0.
type fileID struct {
	tid  int
	name fileName
}

type fileName uint8

const (
	statFile fileName = iota
	statusFile
	statmFile
	ioFile
	schedstatFile
)

var fileNames = [...]string{statFile: "stat", statusFile: "status", statmFile: "statm", ioFile: "io", schedstatFile: "schedstat"}

func (f fileID) path() string {
	if f.tid == 0 {
		return fileNames[f.name]
	}
	return fmt.Sprintf("task/%d/%s", f.tid, fileNames[f.name])
}

// perProcess is the number of descriptors that a process takes apart from its files.
const perProcess = 2

// NewReader returns a Reader that keeps at most the given number of descriptors; 0 means
// a quarter of the process's limit, at most 4096.
func NewReader(most int) *Reader {
	if most == 0 {
		most = share()
	}
	return &Reader{
		most: most, procs: make(map[omis.ProcID]*kept),
		buffers: sync.Pool{New: func() any { b := make([]byte, 4096); return &b }},
	}
}

func share() int {
	const least, most = 16, 4096
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return least
	}
	return int(max(least, min(most, limit.Cur/4)))
}

// Close closes all files. The Reader remains usable, but keeps no files any more.
func (r *Reader) Close() {
	r.crowd.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, k := range r.procs {
		r.drop(k)
	}
}

// Forget closes the files of a process.
func (r *Reader) Forget(p omis.ProcID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.procs[p]; k != nil {
		r.drop(k)
	}
}

// hold finds or opens the descriptors of a process, which stay open until release.
func (r *Reader) hold(p omis.ProcID) (*kept, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.procs[p]
	if k == nil {
		var err error
		if k, err = r.enter(p); err != nil {
			return nil, err
		}
	}
	k.users++
	if k.at != nil {
		r.order.MoveToFront(k.at)
	}
	return k, nil
}

// enter opens the descriptors of a process. The caller holds mu.
func (r *Reader) enter(p omis.ProcID) (*kept, error) {
	r.room(perProcess)
	k, err := openKept(p)
	if exhausted(err) {
		r.room(r.most)
		k, err = openKept(p)
	}
	if err != nil {
		return nil, readError(p.PID, err)
	}
	r.open += perProcess
	if r.open > r.most || r.closed {
		k.gone = true // to be closed after this use
		return k, nil
	}
	r.procs[p] = k
	k.at = r.order.PushFront(k)
	return k, nil
}

// openKept opens the process's directory, then its pidfd, and then checks the start time
// in the directory. The directory always belongs to the same process; if that still
// exists after the pidfd was opened, the pidfd belongs to it too.
func openKept(p omis.ProcID) (*kept, error) {
	dir, err := unix.Open(fmt.Sprintf("/proc/%d", p.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	pidfd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		unix.Close(dir)
		return nil, err
	}
	k := &kept{id: p, dir: dir, pidfd: pidfd, files: make(map[fileID]int)}
	if err := k.verify(); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *kept) verify() error {
	fd, err := k.openFile("stat")
	if err != nil {
		return err
	}
	text, err := readAll(fd, "stat")
	if err != nil {
		return err
	}
	s, err := parseStat(text)
	if err == nil && s.start != k.id.Start {
		err = unix.ESRCH
	}
	return err
}

// release ends the use of a process's descriptors.
func (r *Reader) release(k *kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.users--; k.users > 0 {
		return
	}
	r.open -= len(k.stale)
	closeAll(k.stale)
	k.stale = nil
	if k.gone {
		r.finish(k)
	}
}

// drop removes a process from the table; the last user closes its descriptors. The caller
// holds mu.
func (r *Reader) drop(k *kept) {
	delete(r.procs, k.id)
	r.order.Remove(k.at)
	k.at, k.gone = nil, true
	if k.users == 0 {
		r.finish(k)
	}
}

func (r *Reader) finish(k *kept) {
	r.open -= perProcess + len(k.files) + len(k.stale)
	k.close()
}

// room drops the least recently used processes until n more descriptors may be opened, or
// no unused process is left. The caller holds mu.
func (r *Reader) room(n int) {
	for at := r.order.Back(); at != nil && r.open+n > r.most; {
		k := at.Value.(*kept)
		at = at.Prev()
		if k.users == 0 {
			r.drop(k)
		}
	}
}

func (k *kept) close() {
	for _, fd := range k.files {
		unix.Close(fd)
	}
	closeAll(k.stale)
	unix.Close(k.pidfd)
	unix.Close(k.dir)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// exhausted reports whether the error may disappear when descriptors are closed.
func exhausted(err error) bool { return isErrno(err, unix.EMFILE) || isErrno(err, unix.ENFILE) }
