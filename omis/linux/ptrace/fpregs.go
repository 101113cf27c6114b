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

// Bytes returns the image.
func (r *FPRegs) Bytes() []byte { return (*[unsafe.Sizeof(*r)]byte)(unsafe.Pointer(r))[:] }

// GetFPRegs reads the x87 and SSE registers of a stopped tracee.
func GetFPRegs(tid int, regs *FPRegs) error {
	err := request(unix.PTRACE_GETFPREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}

// SetFPRegs writes these registers; the upper halves of wider registers keep their
// values.
func SetFPRegs(tid int, regs *FPRegs) error {
	err := request(unix.PTRACE_SETFPREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}

// mostState bounds the extended state of a thread; with AMX it takes 11 KB.
const mostState = 32 << 10

// ExtendedState reads all registers of a stopped tracee that XSAVE saves, in the format
// of XSAVE.
func ExtendedState(tid int) ([]byte, error) {
	state := make([]byte, mostState)
	v := unix.Iovec{Base: &state[0], Len: mostState}
	err := request(unix.PTRACE_GETREGSET, tid, unix.NT_X86_XSTATE, uintptr(unsafe.Pointer(&v)))
	runtime.KeepAlive(&v)
	if err != nil {
		return nil, err
	}
	return state[:v.Len], nil
}
