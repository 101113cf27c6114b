//go:build linux && amd64

package linux

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// received is a signal that a thread is held for.
//
// It is not held in the stop that told of the signal: taking that stop takes the
// signal, and a monitor that dies then has stolen it. So the signal is sent once
// more (or comes by itself, when it was a fault of the instruction), the thread
// is let go with an interrupt pending, and the kernel stops it again before it
// looks for signals. Held there, the thread gets its signal whatever becomes of
// us. In exchange, a monitor killed between two system calls may leave a signal
// twice.
type received struct {
	signal int
	info   ptrace.SigInfo
}

// received tells of a signal that a thread is about to get.
func (tr *tracer) received(t *thread, sig int) {
	if tr.o.lending.isOurContinue(t, sig) {
		if t.stays(tr.o) {
			t.asked = ptrace.Interrupt(t.tid) == nil // first, so that it goes no further
		}
		tr.proceed(t, 0)
		return
	}
	if told := t.received; told.signal == sig {
		t.received = received{}
		_ = ptrace.SetSigInfo(t.tid, &told.info) // whose sender is we otherwise
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

// putBack makes a thread stop with its signal still to come.
func (tr *tracer) putBack(t *thread, sig int) {
	told := received{signal: sig}
	if ptrace.GetSigInfo(t.tid, &told.info) != nil {
		return // killed; its end will be told
	}
	t.received = told
	t.asked = ptrace.Interrupt(t.tid) == nil
	if !isFault(sig, told.info.Code) {
		sendAgain(t, sig, told.info)
	}
	t.stop = running
	_ = ptrace.Cont(t.tid, 0)
}

// isFault tells that an instruction raised the signal, and does so again.
func isFault(sig int, code int32) bool {
	switch unix.Signal(sig) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL:
		return code > 0
	}
	return false
}

// sendAgain sends a signal with its information where the kernel lets us, which
// it does not where it would look like one from the kernel or from a kill.
func sendAgain(t *thread, sig int, info ptrace.SigInfo) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(t.pid), uintptr(t.tid), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		_ = unix.Tgkill(t.pid, t.tid, unix.Signal(sig))
	}
}
