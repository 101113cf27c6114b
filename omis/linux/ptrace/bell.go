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

// Interrupting lets a signal interrupt Wait: Go's runtime installs its handlers with
// SA_RESTART, which would restart the wait. It changes the signal's action for the whole
// process and may be called repeatedly.
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

// Quiet stops the kernel from sending SIGCHLD when a tracee stops: nothing waits for that
// signal, and Go's runtime would handle it on the thread that is about to handle the
// stop. Waits end as before. Quiet changes the signal's action for the whole process and
// may be called repeatedly.
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
