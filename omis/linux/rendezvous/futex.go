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

// futexWait sleeps while *word is value, up to a limit; 0 means no limit. It notifies
// Go's scheduler; otherwise every garbage collection would wait for it.
func futexWait(word *uint32, value uint32, limit time.Duration) {
	var ts *unix.Timespec
	if limit > 0 {
		t := unix.NsecToTimespec(int64(limit))
		ts = &t
	}
	// The caller checks the word again, whatever ended the wait.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(value), uintptr(unsafe.Pointer(ts)), 0, 0)
}

// futexDoze waits without notifying the scheduler, which would cost more than the rest of
// a hit. The scheduler assumes that the goroutine computes: when it needs the processor
// for a garbage collection, or after ten milliseconds for other goroutines, it sends a
// signal, which ends the wait like any futex wait with a limit.
func futexDoze(word *uint32, value uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
	runtime.KeepAlive(&ts)
}

// futexWake never blocks, so it does not notify the scheduler.
func futexWake(word *uint32) { futexWakeSome(word, 1) }

func futexWakeSome(word *uint32, number uintptr) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, number, 0, 0, 0)
}

// yield yields the processor to other runnable threads.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
