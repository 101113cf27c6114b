//go:build linux

package proc

import (
	"errors"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// ReadMemory reads memory of a process into buf. It returns the number of bytes read,
// with an error if that is less than all.
func ReadMemory(pid int, addr uint64, buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	switch {
	case err == nil && n == len(buf):
		return n, nil
	case err == nil:
		return n, omis.Errorf(omis.ParameterError, "process %d has no memory at %#x", pid, addr+uint64(n))
	case errors.Is(err, unix.ESRCH):
		return 0, ended(pid)
	case errors.Is(err, unix.EPERM):
		return 0, omis.Errorf(omis.NoPermission, "cannot read the memory of process %d: %w", pid, err)
	}
	return 0, omis.Errorf(omis.ParameterError, "process %d has no memory at %#x", pid, addr)
}
