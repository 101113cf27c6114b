//go:build linux && amd64

package linux

import (
	"fmt"
	"os"
	"strings"

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
	call, _ := calls.Split(name)
	c, ok := calls.ByName(call)
	if !ok {
		return 0, omis.Errorf(omis.ParameterError, "there is no system call %s", name)
	}
	return c.Number, nil
}

// onSocket reports whether a watch means only calls on sockets. The kind of a descriptor can
// be read where a call begins; where the call ends, the descriptor may be another file.
func onSocket(w *node.Watch) (bool, error) {
	_, socket := calls.Split(w.Name)
	if socket && w.Event != node.EventSysCallStarted {
		return false, omis.Errorf(omis.ParameterError, "%s: whether a call is on a socket is known where it begins, not where it ends", w.Name)
	}
	return socket, nil
}

// isSocket reports whether a descriptor of a process is a socket.
func isSocket(pid int, fd uint64) bool {
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, uint32(fd)))
	return err == nil && strings.HasPrefix(target, "socket:")
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
