//go:build linux && amd64

package rendezvous

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWaitOp = 0
	futexWakeOp = 1
)

// futexWait sleeps while *word is value, at most for a time; 0 means no limit. It
// tells Go's scheduler, which would else wait for us with every collection.
func futexWait(word *uint32, value uint32, limit time.Duration) {
	var ts *unix.Timespec
	if limit > 0 {
		t := unix.NsecToTimespec(int64(limit))
		ts = &t
	}
	// Whatever ends the wait, the caller looks anew.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(value), uintptr(unsafe.Pointer(ts)), 0, 0)
}

// futexDoze waits without telling the scheduler, which costs more than the rest of
// a hit. The scheduler takes us to be computing: when it wants the processor for
// a collection, or after ten milliseconds for others, the signal that it sends ends
// the wait, as signals end every futex wait with a limit.
func futexDoze(word *uint32, value uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
	runtime.KeepAlive(&ts)
}

// futexWake never blocks, so it need not tell the scheduler.
func futexWake(word *uint32) { futexWakeSome(word, 1) }

func futexWakeSome(word *uint32, number uintptr) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, number, 0, 0, 0)
}

// yield leaves the processor to others that are ready to run on it.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
