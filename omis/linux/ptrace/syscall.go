//go:build linux && amd64

package ptrace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kinds of system-call stop.
const (
	SyscallEntry = 1
	SyscallExit  = 2
)

// SyscallInfo is struct ptrace_syscall_info.
type SyscallInfo struct {
	Op     uint8
	_      [3]uint8
	Arch   uint32
	IP, SP uint64
	Number uint64 // at the exit: the result
	Args   [6]uint64
	_      uint64
}

// Result returns the result of the system call, at its exit.
func (i *SyscallInfo) Result() int64 { return int64(i.Number) }

// GetSyscallInfo reads the system-call stop of a tracee.
func GetSyscallInfo(tid int, info *SyscallInfo) error {
	const reqGetSyscallInfo = 0x420e
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, reqGetSyscallInfo, uintptr(tid), unsafe.Sizeof(*info), uintptr(unsafe.Pointer(info)), 0, 0)
	runtime.KeepAlive(info)
	if errno != 0 {
		return errno
	}
	return nil
}
