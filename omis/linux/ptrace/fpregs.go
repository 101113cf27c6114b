//go:build linux && amd64

package ptrace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FPRegs is the memory image of FXSAVE.
type FPRegs struct {
	_   [32]byte
	ST  [8][16]byte
	XMM [16][16]byte
	_   [96]byte
}

// Bytes are the image itself.
func (r *FPRegs) Bytes() []byte { return (*[unsafe.Sizeof(*r)]byte)(unsafe.Pointer(r))[:] }

// GetFPRegs reads the x87 and SSE registers of a stopped tracee.
func GetFPRegs(tid int, regs *FPRegs) error {
	err := request(unix.PTRACE_GETFPREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}

// SetFPRegs replaces them; the upper halves of wider registers stay.
func SetFPRegs(tid int, regs *FPRegs) error {
	err := request(unix.PTRACE_SETFPREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}
