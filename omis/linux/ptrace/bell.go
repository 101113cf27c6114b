//go:build linux && amd64

package ptrace

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct sigaction.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	saRestart   = 0x10000000
	saNoStopped = 1 // SA_NOCLDSTOP
)

// Interrupting makes a signal interrupt Wait: Go's runtime installs its handlers
// with SA_RESTART, under which a wait would simply go on. It changes the
// disposition for the whole monitor, to the same effect however often.
func Interrupting(sig unix.Signal) error {
	var act sigaction
	if err := rtSigaction(sig, nil, &act); err != nil {
		return err
	}
	if act.handler <= 1 {
		return fmt.Errorf("signal %d has no handler", sig)
	}
	act.flags &^= saRestart
	return rtSigaction(sig, &act, nil)
}

// Quiet has the kernel send no SIGCHLD when a tracee stops: Go's runtime handles
// that signal, which nobody waits for, on the very thread that is about to deal
// with the stop. Waits end as before. It changes the disposition for the whole
// monitor, to the same effect however often.
func Quiet() error {
	var act sigaction
	if err := rtSigaction(unix.SIGCHLD, nil, &act); err != nil {
		return err
	}
	act.flags |= saNoStopped
	return rtSigaction(unix.SIGCHLD, &act, nil)
}

func rtSigaction(sig unix.Signal, act, old *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(act)), uintptr(unsafe.Pointer(old)), sigsetSize, 0, 0)
	runtime.KeepAlive(act)
	runtime.KeepAlive(old)
	if errno != 0 {
		return errno
	}
	return nil
}
