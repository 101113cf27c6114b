//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// A lent process is stopped by SIGSTOP. The warden continues it if the monitor dies. The
// program does not see the SIGCONT that ends this: it has a mark, and the thread that would
// receive it does not get it.

// queued is SI_QUEUE, the code of a signal that carries a value.
const queued = -1

// continueMark is the value of the monitor's SIGCONT.
const continueMark = 0x6d697261646f72

// marked returns the information that is sent with the monitor's SIGCONT.
func marked() *unix.Siginfo {
	var raw [unsafe.Sizeof(unix.Siginfo{})]byte
	const code, sender, value = 8, 16, 24 // offsets in a siginfo_t
	binary.NativeEndian.PutUint32(raw[:], uint32(unix.SIGCONT))
	negative := int32(queued)
	binary.NativeEndian.PutUint32(raw[code:], uint32(negative))
	binary.NativeEndian.PutUint32(raw[sender:], uint32(os.Getpid()))
	binary.NativeEndian.PutUint64(raw[value:], continueMark)
	return (*unix.Siginfo)(unsafe.Pointer(&raw))
}

func isMarked(info *ptrace.SigInfo) bool {
	const value = 24
	raw := unsafe.Slice((*byte)(unsafe.Pointer(info)), unsafe.Sizeof(*info))
	return info.Code == queued && binary.NativeEndian.Uint64(raw[value:]) == continueMark
}

// holdStill sends SIGSTOP to the frozen process, unless it was stopped before.
func (d *lending) holdStill(l *loan) error {
	if l.byOthers {
		return nil
	}
	fd, err := openProcess(d.o.proc)
	if err != nil {
		return err
	}
	l.guarded = os.NewFile(uintptr(fd), "pidfd")
	if err := d.o.node.warden.Still(d.o.proc.PID, l.guarded); err != nil {
		l.guarded.Close()
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0); err != nil {
		d.unguard(l)
		return omis.Errorf(omis.OSError, "cannot stop process %d: %w", d.o.proc.PID, err)
	}
	return nil
}

// moveOn undoes holdStill.
func (d *lending) moveOn(l *loan) {
	if l.byOthers {
		return
	}
	d.endStop()
	// If this fails, the warden finds the process running.
	d.unguard(l)
}

func (d *lending) unguard(l *loan) {
	_ = d.o.node.warden.Moving(d.o.proc.PID)
	l.guarded.Close()
}

// endStop ends the group-stop of a frozen process. No thread executes anything of its program.
func (d *lending) endStop() {
	fd, err := openProcess(d.o.proc)
	if err != nil {
		return // the process has ended
	}
	defer unix.Close(fd)
	d.continued = false
	if unix.PidfdSendSignal(fd, unix.SIGCONT, marked(), 0) != nil {
		return
	}
	for _, t := range d.o.tracer.threads {
		if t.stop == groupStop {
			t.stop = trapStop
		}
	}
	d.swallowContinue()
}

// swallowContinue lets a thread that does not block the signal take it from the process's
// queue. The thread is not interrupted, because that would stop it before it looks there.
func (d *lending) swallowContinue() {
	cont := proc.SignalBit(unix.SIGCONT)
	for _, t := range d.o.tracer.threads {
		mask, err := ptrace.Sigmask(t.tid)
		if err != nil || mask&cont != 0 {
			continue
		}
		for !d.continued && d.o.tracer.threads[t.tid] == t && t.stopped() {
			s, err := proc.ReadStatus(d.o.proc.PID)
			if err != nil || s.Shared&cont == 0 {
				return // the kernel discarded it
			}
			t.stop = running
			_ = ptrace.Cont(t.tid, 0)
			d.o.tracer.pump(patience, func() bool { return d.o.tracer.threads[t.tid] != t || t.stopped() })
		}
		if d.continued {
			return
		}
	}
}

// isOurContinue reports whether the signal that a thread is stopped for is the monitor's
// SIGCONT, which is not passed on.
func (d *lending) isOurContinue(t *thread, sig int) bool {
	if sig != int(unix.SIGCONT) {
		return false
	}
	var info ptrace.SigInfo
	if ptrace.GetSigInfo(t.tid, &info) != nil || !isMarked(&info) {
		return false
	}
	d.continued = true
	return true
}

// welcome takes over a restored process, which CRIU has stopped. It is then stopped as by
// Stop, so that Continue continues it.
type welcome struct {
	stays bool // stopped by job control
}

func (c welcome) do(o *owner) error {
	err := o.lending.welcome(c.stays)
	if err != nil {
		o.restIfIdle()
	}
	return err
}

func (d *lending) welcome(stays bool) error {
	if err := d.o.halts.prepareStop(nil); err != nil {
		return err
	}
	d.o.halts.halted = true
	d.o.tracer.freeze(nil)
	defer d.o.tracer.thaw()
	if !stays {
		d.endStop()
	}
	return nil
}
