//go:build linux && amd64

package ptrace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Causes of a wait status (si_code of SIGCHLD).
const (
	Exited  = 1
	Killed  = 2
	Dumped  = 3
	Trapped = 4
	Stopped = 5 // group-stop of a child that is not traced
)

// EventStop is the event of a seized tracee that was interrupted, is new, or
// takes part in a group-stop.
const EventStop = 128

// Status says what happened to which thread.
type Status struct {
	TID   int
	Cause int
	code  int
}

// Ended tells that the thread is gone (and must be reaped).
func (s Status) Ended() bool { return s.Cause == Exited || s.Cause == Killed || s.Cause == Dumped }

// Signal is the signal of a stop, without the mark of a system-call stop.
func (s Status) Signal() int { return s.code & 0x7f }

// Event is the PTRACE_EVENT of a stop, 0 for a signal-delivery or system-call stop.
func (s Status) Event() int { return s.code >> 8 }

// SyscallStop tells that the tracee is at the entry to or exit from a system call.
func (s Status) SyscallStop() bool { return s.code == int(unix.SIGTRAP)|0x80 }

// childInfo is siginfo_t as waitid fills it.
type childInfo struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
	_                     [100]byte
}

const (
	ours    = unix.WALL | unix.WNOTHREAD // children and tracees of this OS thread alone
	peeking = unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT | ours
)

// Wait blocks until a tracee or child of this OS thread has something to tell,
// and tells it without taking it: the kernel keeps the stop's signal until the
// tracee is resumed, so that it is delivered, not lost, should the monitor die
// in between. EINTR means that a signal came first, ECHILD that there is nobody
// to wait for.
func Wait() (Status, error) {
	var info childInfo
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), peeking, 0, 0)
	runtime.KeepAlive(&info)
	return info.result(errno)
}

// Poll is Wait without blocking; ok is false when nobody has anything to tell.
func Poll() (s Status, ok bool) {
	return poll(unix.P_ALL, 0, peeking|unix.WNOHANG)
}

// PollThread is Poll for one thread.
func PollThread(tid int) (s Status, ok bool) {
	return poll(unix.P_PID, tid, peeking|unix.WNOHANG)
}

func poll(idType, id, options int) (Status, bool) {
	var info childInfo
	_, _, errno := unix.RawSyscall6(unix.SYS_WAITID, uintptr(idType), uintptr(id), uintptr(unsafe.Pointer(&info)), uintptr(options), 0, 0)
	runtime.KeepAlive(&info)
	s, err := info.result(errno)
	return s, err == nil && s.TID != 0
}

// Reap takes the stop that Wait told about: it is not told again. An end that has
// come since is still to be told.
func Reap(tid int) {
	poll(unix.P_PID, tid, unix.WSTOPPED|unix.WNOHANG|ours)
}

// ReapDead takes the end of a tracee or child, whichever OS thread of this
// process it belongs to, and tells whether it had ended. It looks before it takes:
// of a tracee the kernel tells stops, too, to whoever asks for ends alone, and its
// owner would wait for ever for a stop that was taken.
func ReapDead(tid int) bool {
	const ends = unix.WEXITED | unix.WALL | unix.WNOHANG
	if s, ok := poll(unix.P_PID, tid, ends|unix.WNOWAIT); !ok || !s.Ended() {
		return false
	}
	s, ok := poll(unix.P_PID, tid, ends)
	return ok && s.Ended()
}

func (i *childInfo) result(errno unix.Errno) (Status, error) {
	if errno != 0 {
		return Status{}, errno
	}
	return Status{TID: int(i.pid), Cause: int(i.code), code: int(i.status)}, nil
}

// Yield leaves the processor to others that are ready to run on it.
func Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
