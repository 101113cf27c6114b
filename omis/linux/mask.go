//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// A thread that runs into a breakpoint with SIGTRAP blocked makes the kernel reset the
// handler, for all threads, and without a monitor it dies at once. So while breakpoints
// stand no thread blocks SIGTRAP, as far as it can be had: neither by its mask, nor in
// the program's signal handlers by theirs. Who sets a new mask meanwhile is noticed at
// his next hit.

// trapBit is SIGTRAP in a set of signals.
const trapBit = 1 << (unix.SIGTRAP - 1)

// unblockAll unblocks SIGTRAP in all threads: the kernel resets the handler of a
// blocked signal that the processor raises.
func (o *owner) unblockAll() {
	for _, t := range o.threads {
		if t.stopped() {
			o.unblock(t)
		}
	}
}

func (o *owner) unblock(t *thread) {
	if mask, err := ptrace.Sigmask(t.tid); err == nil && mask&trapBit != 0 {
		t.unblocked, t.mask = ptrace.SetSigmask(t.tid, mask&^trapBit) == nil, mask&^trapBit
	}
}

// reblock undoes unblock, unless the program has set another mask since, as
// pthread_create does: what it set then is what it wants. Nor does it where the program
// has a handler for SIGTRAP, in which the signal is blocked: the thread may have been
// there, and have returned since, and would die of its next trap.
func (o *owner) reblock(t *thread) {
	if !t.unblocked {
		return
	}
	if mask, err := ptrace.Sigmask(t.tid); err == nil && mask == t.mask {
		_ = ptrace.SetSigmask(t.tid, mask|trapBit)
	}
	t.unblocked = false
}

// openHandlers takes SIGTRAP out of the masks of those of the program's signal handlers
// that were not looked at yet.
func (o *owner) openHandlers(t *thread) error {
	s, err := proc.ReadStatus(o.proc.PID)
	if err != nil {
		return ended(o.proc.PID)
	}
	fresh := s.Caught &^ o.space.caught &^ trapBit
	if fresh == 0 {
		return nil
	}
	opened, err := o.sweep(t, o.space.memory, fresh, false)
	if err != nil {
		return err
	}
	o.space.caught = s.Caught
	return o.noteOpened(o.space.opened | opened)
}

// noteOpened says in home which handlers are open, for a monitor that comes after us.
func (o *owner) noteOpened(signals uint64) error {
	if signals == o.space.opened {
		return nil
	}
	o.space.opened = signals
	return o.write(o.space.home.Opened(), word(signals))
}

// closeHandlers gives them their masks back, in the process or in a child that memory
// belongs to.
func (o *owner) closeHandlers(t *thread, memory *os.File) {
	s, err := proc.ReadStatus(t.pid)
	if err != nil {
		return // it has ended
	}
	if signals := o.space.opened & s.Caught; signals != 0 {
		_, _ = o.sweep(t, memory, signals, true) // the same
	}
	if memory == o.space.memory {
		o.space.caught = 0
		_ = o.noteOpened(0)
	}
}

// How often to look whether the resident handler is in place, and at the least whether
// the program has set its own handlers again, with masks as before.
const (
	checkEvery = 50 * time.Millisecond
	openEvery  = time.Second
)

// verify looks whether the resident handler is still in place: now and then, at a
// thread's first hit, and where a thread blocks other signals than at its last hit. The
// kernel has taken SIGTRAP out of its mask then, when it reset the handler, but only
// that. It looks as well whether the program has set new handlers of its own.
func (o *owner) verify(t *thread) {
	mask, err := ptrace.Sigmask(t.tid)
	suspect := err == nil && mask != 0 && mask != t.atHit && !o.space.harmless[mask]
	t.atHit = mask
	if t.checked && !suspect && o.node.since(o.checked) < checkEvery {
		return
	}
	t.checked, o.checked = true, o.node.Now()
	s, err := proc.ReadStatus(o.proc.PID)
	if err != nil || !o.space.armed {
		return
	}
	reset := s.Caught&trapBit == 0
	o.space.judge(mask, reset)
	if reset && o.node.since(o.space.looked) > openEvery {
		o.space.looked, o.space.caught = o.node.Now(), 0 // look at all of them again
	}
	o.repair = o.repair || reset || (s.Caught&^o.space.caught)&^trapBit != 0
}

// judge notes what was found where a thread blocks the signals of a mask: one that is
// never met with the handler reset need not be looked at each time.
func (s *space) judge(mask uint64, reset bool) {
	const most = 64
	if s.harmless == nil || len(s.harmless) == most {
		s.harmless = make(map[uint64]bool)
	}
	known, met := s.harmless[mask]
	s.harmless[mask] = !reset && (known || !met)
}

// reinstall puts the handler back after the kernel reset it: a thread ran into a
// breakpoint with SIGTRAP blocked.
func (o *owner) reinstall() {
	if !o.space.armed {
		return
	}
	o.freeze(nil)
	defer o.thaw()
	o.unblockAll()
	// A failure leaves the breakpoints to the tracer alone; the next check tries again.
	_ = o.install()
}
