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

// A process that is lent stands still by SIGSTOP, under the warden's guard, who
// sets it going should we die. The SIGCONT that ends it is nothing the program
// need hear of: it carries a mark, and is taken from the thread that would get it.

// queued is SI_QUEUE, the code of a signal that carries a value.
const queued = -1

// continueMark is the value that our SIGCONT carries.
const continueMark = 0x6d697261646f72

// marked is the information that comes with our SIGCONT.
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

// holdStill sends the frozen process a SIGSTOP, unless it was stopped before.
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
		return omis.Errorf(omis.OSError, "%v", err)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0); err != nil {
		d.unguard(l)
		return omis.Errorf(omis.OSError, "cannot stop process %d: %v", d.o.proc.PID, err)
	}
	return nil
}

// moveOn undoes holdStill.
func (d *lending) moveOn(l *loan) {
	if l.byOthers {
		return
	}
	d.endStop()
	// A warden that cannot be told finds the process running.
	d.unguard(l)
}

func (d *lending) unguard(l *loan) {
	_ = d.o.node.warden.Moving(d.o.proc.PID)
	l.guarded.Close()
}

// endStop ends the group-stop of a frozen process. No thread executes anything
// of its program.
func (d *lending) endStop() {
	fd, err := openProcess(d.o.proc)
	if err != nil {
		return // it has ended
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

// swallowContinue has a thread take the signal from the process's queue, one that
// does not block it. An interrupt would stop the thread before it looks there.
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
				return // it was discarded
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

// isOurContinue tells whether the signal that a thread is stopped for ends a
// group-stop of ours. It is not passed on.
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

// welcome takes a restored process over, which stands still by CRIU's doing: it
// is stopped as Stop stops, so that Continue sets it going.
type welcome struct {
	*answer
	stays bool // stopped by job control
}

func (c welcome) do(o *owner) {
	err := o.lending.welcome(c.stays)
	if err != nil {
		o.restIfIdle()
	}
	c.give(err)
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
