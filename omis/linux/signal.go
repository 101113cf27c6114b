//go:build linux && amd64

package linux

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// received is a signal for which a thread is held.
//
// The thread is not held in the stop that reported the signal: reaping that stop consumes the
// signal, and the monitor's death would lose it. So the signal is sent again (or comes again,
// if an instruction raised it), the thread is continued with a pending interrupt, and the
// kernel stops it again before it looks for signals. If the monitor dies then, the thread gets
// its signal. A monitor that is killed between two of these system calls may leave the signal
// twice.
type received struct {
	signal int
	info   ptrace.SigInfo
}

// received handles a signal that a thread is about to get.
func (tr *tracer) received(t *thread, sig int) {
	if tr.o.lending.isOurContinue(t, sig) {
		if t.stays(tr.o) {
			t.asked = ptrace.Interrupt(t.tid) == nil // first, so that the thread executes nothing
		}
		tr.proceed(t, 0)
		return
	}
	if told := t.received; told.signal == sig {
		t.received = received{}
		_ = ptrace.SetSigInfo(t.tid, &told.info) // the sender would be the monitor otherwise
		tr.pass(t, sig)
		return
	}
	watches := tr.o.events.kinds[node.EventSignal]
	if len(watches) == 0 || t.kind != member {
		tr.pass(t, sig)
		return
	}
	holds := t.holds
	h := tr.o.events.newHit(t)
	h.Signal = sig
	for _, w := range watches {
		if len(w.Signals) == 0 || slices.Contains(w.Signals, sig) {
			w.handle(&h.Hit)
		}
	}
	if t.holds == holds {
		tr.pass(t, sig)
		return
	}
	tr.putBack(t, sig)
}

// putBack stops a thread with its signal still to come.
func (tr *tracer) putBack(t *thread, sig int) {
	told := received{signal: sig}
	if ptrace.GetSigInfo(t.tid, &told.info) != nil {
		return // it was killed; its end will be reported
	}
	t.received = told
	t.asked = ptrace.Interrupt(t.tid) == nil
	if !isFault(sig, told.info.Code) {
		sendAgain(t, sig, told.info)
	}
	t.stop = running
	_ = ptrace.Cont(t.tid, 0)
}

// isFault reports whether an instruction raised the signal, and will raise it again.
func isFault(sig int, code int32) bool {
	switch unix.Signal(sig) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL:
		return code > 0
	}
	return false
}

// sendAgain sends a signal with its information if the kernel permits that; it does not if the
// signal would look like one from the kernel or from kill.
func sendAgain(t *thread, sig int, info ptrace.SigInfo) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(t.pid), uintptr(t.tid), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		_ = unix.Tgkill(t.pid, t.tid, unix.Signal(sig))
	}
}
