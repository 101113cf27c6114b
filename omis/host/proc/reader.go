//go:build linux

package proc

import (
	"container/list"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// A Reader reads about processes and threads again and again. To open a file of
// /proc costs more than to read it, so it keeps their files open: at the most
// so many as its limit says, of the processes that were asked about last.
//
// A file that was opened belongs to its process for ever: when that has ended,
// reading answers ESRCH, whoever has its number then.
//
// Its methods may be called from any goroutine; nobody waits for somebody
// else's reading.
type Reader struct {
	buffers sync.Pool
	most    int // descriptors
	crowd   crowd

	mu     sync.Mutex
	procs  map[omis.ProcID]*kept
	order  list.List // of *kept, the one asked about last first
	open   int       // descriptors
	closed bool
}

// kept are the descriptors of one process. The lock of its reader guards it.
type kept struct {
	id    omis.ProcID
	dir   int // its directory in /proc
	pidfd int
	files map[fileID]int
	stale []int // of threads that have ended
	tids  []int // of threads, as they were listed last; never written to
	// systems are the times spent in the kernel that were told last, see neverLess.
	systems map[instance]uint64
	system  int64 // the same of the process, in ticks, see notLess
	users   int   // who read at this moment
	gone    bool  // from the reader's table; closed by the last user
	at      *list.Element
}

// fileID names a file of a process, or of a thread where tid is not 0.
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

// perProcess are the descriptors that a process takes before any file is open.
const perProcess = 2

// NewReader makes a reader that keeps at most so many descriptors; 0: a quarter
// of what the monitor may have, at the most 4096.
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

// Close closes all files. The reader may still be used; it keeps nothing then.
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

// hold finds or opens the descriptors of a process, which stay open until they
// are released.
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
		k.gone = true // after this one use
		return k, nil
	}
	r.procs[p] = k
	k.at = r.order.PushFront(k)
	return k, nil
}

// openKept makes sure that it is the very process: its directory, once open,
// shows no other, and if that still shows the right one after the pidfd was
// opened, this one is right too.
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

// drop takes a process out of the table; it is closed when nobody uses it any
// more. The caller holds mu.
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

// room drops processes that nobody asked about for longest, until so many
// descriptors may be opened, or nothing is left to drop. The caller holds mu.
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

// exhausted tells that an error may not be one with fewer descriptors open.
func exhausted(err error) bool { return isErrno(err, unix.EMFILE) || isErrno(err, unix.ENFILE) }
