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

// EventStop is the event of a seized tracee that was interrupted, is new, or takes part
// in a group-stop.
const EventStop = 128

// Status is a change of state of a thread.
type Status struct {
	TID   int
	Cause int
	code  int
}

// Ended reports whether the thread has ended (and must be reaped).
func (s Status) Ended() bool { return s.Cause == Exited || s.Cause == Killed || s.Cause == Dumped }

// Signal returns the signal of a stop, without the mark of a system-call stop.
func (s Status) Signal() int { return s.code & 0x7f }

// Event returns the PTRACE_EVENT of a stop, 0 for a signal-delivery or system-call stop.
func (s Status) Event() int { return s.code >> 8 }

// SyscallStop reports whether the tracee is at the entry to or exit from a system call.
func (s Status) SyscallStop() bool { return s.code == int(unix.SIGTRAP)|0x80 }

// childInfo is the siginfo_t that waitid fills in.
type childInfo struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
	_                     [100]byte
}

const (
	ours    = unix.WALL | unix.WNOTHREAD // only children and tracees of this OS thread
	peeking = unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT | ours
)

// Wait blocks until a tracee or child of this OS thread changes state, and returns its
// status without consuming it: the kernel keeps the signal of a stop until the tracee
// continues, so that it delivers the signal if the monitor dies before. EINTR means that
// a signal arrived, ECHILD that there is no tracee or child.
func Wait() (Status, error) {
	var info childInfo
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), peeking, 0, 0)
	runtime.KeepAlive(&info)
	return info.result(errno)
}

// Poll returns the status that Wait would return, but does not block; ok is false if
// there is none.
func Poll() (s Status, ok bool) {
	return poll(unix.P_ALL, 0, peeking|unix.WNOHANG)
}

// PollThread does the same for one thread.
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

// Reap consumes the stop that Wait returned. If the thread has ended since, Wait will
// still return its end.
func Reap(tid int) {
	poll(unix.P_PID, tid, unix.WSTOPPED|unix.WNOHANG|ours)
}

// ReapDead reaps a tracee or child of any OS thread of this process, and reports whether
// it had ended. It inspects the status before it consumes it: the kernel also returns a
// tracee's stops to a caller that asks only for ends, and the tracee's owner would wait
// forever for a stop that was consumed.
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

// Yield yields the processor to other runnable threads.
func Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
