//go:build linux && amd64

package ptrace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options are set for every tracee. PTRACE_O_EXITKILL is absent on purpose: a target
// outlives its monitor. TRACESYSGOOD marks system-call stops with 0x80; without it, if
// the tracer dies during such a stop, a real SIGTRAP kills the tracee.
const Options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD

// Requests that golang.org/x/sys/unix does not name.
const (
	reqGetSigmask = 0x420a
	reqSetSigmask = 0x420b
	sigsetSize    = 8
)

// Regs holds the general registers of a tracee.
type Regs = unix.PtraceRegs

// request makes a request that never blocks. It does not notify Go's scheduler, which
// would cost more than most requests. It must not grow the stack, because data may be an
// address on the stack that was converted to a number.
//
//go:nosplit
func request(req, tid int, addr, data uintptr) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Seize attaches without stopping the tracee. Unlike other requests it can block, while
// the process executes another program (cred_guard_mutex). So it notifies Go's scheduler;
// otherwise the garbage collector, and with it all goroutines, would wait for this
// thread.
func Seize(tid int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, Options, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// SetOptions replaces the options of a stopped tracee.
func SetOptions(tid, options int) error {
	return request(unix.PTRACE_SETOPTIONS, tid, 0, uintptr(options))
}

// Interrupt makes a seized tracee stop soon; an interrupted system call restarts.
func Interrupt(tid int) error { return request(unix.PTRACE_INTERRUPT, tid, 0, 0) }

// Cont continues a stopped tracee and delivers sig unless it is 0.
func Cont(tid, sig int) error { return request(unix.PTRACE_CONT, tid, 0, uintptr(sig)) }

// Syscall continues a tracee as Cont does, up to the next entry to or exit from a system
// call.
func Syscall(tid, sig int) error { return request(unix.PTRACE_SYSCALL, tid, 0, uintptr(sig)) }

// Step continues a tracee as Cont does, for one instruction.
func Step(tid, sig int) error { return request(unix.PTRACE_SINGLESTEP, tid, 0, uintptr(sig)) }

// Listen leaves a tracee in its group-stop, but lets SIGCONT wake it.
func Listen(tid int) error { return request(unix.PTRACE_LISTEN, tid, 0, 0) }

// Detach detaches a stopped tracee, which continues, and delivers sig unless it is 0.
func Detach(tid, sig int) error { return request(unix.PTRACE_DETACH, tid, 0, uintptr(sig)) }

// GetRegs reads the general registers of a stopped tracee.
func GetRegs(tid int, regs *Regs) error {
	err := request(unix.PTRACE_GETREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}

// SetRegs writes all general registers in one request, so that the tracer's death cannot
// leave only half of them changed.
func SetRegs(tid int, regs *Regs) error {
	err := request(unix.PTRACE_SETREGS, tid, 0, uintptr(unsafe.Pointer(regs)))
	runtime.KeepAlive(regs)
	return err
}

// SetPC writes the program counter.
func SetPC(tid int, pc uint64) error {
	return request(unix.PTRACE_POKEUSR, tid, unsafe.Offsetof(Regs{}.Rip), uintptr(pc))
}

// SigInfo is the beginning of a siginfo_t.
type SigInfo struct {
	Signo, Errno, Code int32
	_                  [116]byte
}

// GetSigInfo reads the siginfo of the signal for which a tracee is stopped.
func GetSigInfo(tid int, info *SigInfo) error {
	err := request(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(info)))
	runtime.KeepAlive(info)
	return err
}

// FromKernel is the code of a signal that the processor raised at a breakpoint.
const FromKernel = 0x80

// WillTrap reports whether a SIGTRAP that the processor raised at a breakpoint or step is
// pending for a stopped tracee.
func WillTrap(tid int) bool {
	var pending [16]SigInfo // of the thread, since the processor raises signals for threads only
	for off := uint64(0); ; off += uint64(len(pending)) {
		args := struct {
			off   uint64
			flags uint32
			most  int32
		}{off: off, most: int32(len(pending))}
		n, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKSIGINFO, uintptr(tid), uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&pending)), 0, 0)
		if errno != 0 {
			return false
		}
		for _, s := range pending[:n] {
			if s.Signo == int32(unix.SIGTRAP) && s.Code > 0 {
				return true
			}
		}
		if int(n) < len(pending) {
			return false
		}
	}
}

// SetSigInfo replaces the siginfo of the signal for which a tracee is stopped.
func SetSigInfo(tid int, info *SigInfo) error {
	err := request(unix.PTRACE_SETSIGINFO, tid, 0, uintptr(unsafe.Pointer(info)))
	runtime.KeepAlive(info)
	return err
}

// EventMessage returns the new thread or process of a clone, fork or vfork event, or the
// former thread id of an exec event.
func EventMessage(tid int) (int, error) {
	var msg uint64
	err := request(unix.PTRACE_GETEVENTMSG, tid, 0, uintptr(unsafe.Pointer(&msg)))
	runtime.KeepAlive(&msg)
	return int(msg), err
}

// Sigmask reads the set of blocked signals, bit sig-1 for signal sig.
func Sigmask(tid int) (uint64, error) {
	var mask uint64
	err := request(reqGetSigmask, tid, sigsetSize, uintptr(unsafe.Pointer(&mask)))
	runtime.KeepAlive(&mask)
	return mask, err
}

// SetSigmask replaces the set of blocked signals.
func SetSigmask(tid int, mask uint64) error {
	err := request(reqSetSigmask, tid, sigsetSize, uintptr(unsafe.Pointer(&mask)))
	runtime.KeepAlive(&mask)
	return err
}
