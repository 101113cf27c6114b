//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// systemCall is a system call that a thread is in.
type systemCall struct {
	known  bool // its entry was observed
	number int
	args   [6]uint64
}

// otherCall is the number for calls of 32-bit code, whose numbers have other meanings.
const otherCall = -1

func isSystemCall(kind node.EventKind) bool {
	return kind == node.EventSysCallStarted || kind == node.EventSysCallEnded
}

// callsMatter reports whether a thread's system calls are watched.
func (e *events) callsMatter(t *thread) bool {
	return e.concerned(node.EventSysCallStarted, t) || e.concerned(node.EventSysCallEnded, t)
}

// atSystemCall handles a stop at the entry to or the exit from a system call.
func (e *events) atSystemCall(t *thread) {
	t.stop, e.o.tracer.busy = callStop, true
	var info ptrace.SyscallInfo
	if ptrace.GetSyscallInfo(t.tid, &info) != nil {
		return // it was killed; its end will be reported
	}
	switch info.Op {
	case ptrace.SyscallEntry:
		t.stop = entryStop
		if t.atAbandoned(&info) {
			break
		}
		t.call = systemCall{known: true, number: int(int32(info.Number)), args: info.Args}
		if info.Arch != unix.AUDIT_ARCH_X86_64 {
			t.call.number = otherCall
		}
		if t.call.number == unix.SYS_URETPROBE || t.call.number == unix.SYS_UPROBE {
			t.call = systemCall{} // the kernel makes threads do it where probes are: the program does not
			break
		}
		if t.interrupted.starts(interruptedCall{t.call, info.SP, info.IP}) {
			e.tellCall(node.EventSysCallStarted, t, 0)
		}
	case ptrace.SyscallExit:
		// A new thread returns from the call of its creator, which it has not made itself.
		if !t.atAbandoned(&info) && t.call.known {
			var ended bool
			if t.call, ended = t.interrupted.ends(interruptedCall{t.call, info.SP, info.IP}, info.Result()); ended {
				e.tellCall(node.EventSysCallEnded, t, info.Result())
			}
		}
		t.call = systemCall{}
		e.o.steps.stepEnded(t)
		if t.fresh {
			t.fresh = false
			e.o.library.awaitLook(t)
		}
	}
	e.o.tracer.settle(t)
}

// isRestart reports whether a system call was interrupted and will be made again, when the
// signal or stop that interrupted it was handled.
func isRestart(result int64) bool {
	const first, last = -516, -512 // ERESTARTSYS to ERESTART_RESTARTBLOCK
	return result >= first && result <= last && unix.Errno(-result) != 515
}

// tellCall calls the handlers of an event of a system call.
func (e *events) tellCall(kind node.EventKind, t *thread, result int64) {
	if t.kind != member {
		return
	}
	var h *hit
	for _, w := range e.kinds[kind] {
		if w.call >= 0 && w.call != t.call.number || !w.concerns(t) {
			continue
		}
		if !isOn(w.file, t.tid, t.call.args) {
			continue
		}
		if h == nil {
			h = e.newHit(t)
			h.Params = e.callParams(kind, t, result)
		}
		w.handle(&h.Hit)
	}
}
