//go:build linux && amd64

package linux

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

// callNumber returns the number of the system call that a watch names, -1 for all.
func callNumber(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	call, kind := calls.Split(name)
	c, ok := calls.ByName(call)
	if !ok || kind == calls.OnLock && call != "futex" {
		return 0, calls.Unknown(name)
	}
	return c.Number, nil
}

// isOn reports whether the arguments of a system call suit a kind: whether the first is a descriptor
// of such a file, or the call waits for a lock.
func isOn(kind calls.FileKind, pid int, args [6]uint64) bool {
	switch kind {
	case calls.AnyFile:
		return true
	case calls.OnLock:
		return calls.WaitsForLock(args[1], args[2])
	}
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/fd/%d", pid, uint32(args[0])), unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &s)
	return err == nil && slices.Contains(kind.Types(), uint32(s.Mode)&calls.TypeMask)
}

// callParams returns the parameters of the event of a system call.
func (e *events) callParams(kind node.EventKind, t *thread, result int64) []omis.Value {
	c := calls.ByNumber(uint64(t.call.number))
	memory := func(buf []byte, addr uint64) (int, error) { return proc.ReadMemory(e.o.proc.PID, addr, buf) }
	if kind == node.EventSysCallStarted {
		return c.Started(t.call.args, memory)
	}
	return c.Ended(t.call.args, uint64(result), memory)
}
