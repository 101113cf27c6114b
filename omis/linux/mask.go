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

// masks owns what is known of the signals that threads and the program's handlers block. It
// belongs to the owner's goroutine.
type masks struct {
	o *owner

	opened   uint64          // signals from whose handlers' masks SIGTRAP was removed
	caught   uint64          // signals whose handlers were checked for that
	looked   int64           // when all handlers were last checked
	harmless map[uint64]bool // masks met at hits; see judge
	checked  int64           // when the resident handler was last found installed
	repair   bool            // it was found missing
}

// reset forgets the handlers of a program that has ended.
func (m *masks) reset() { *m = masks{o: m.o, checked: m.checked} }

// trapBit is SIGTRAP in a set of signals.
const trapBit = 1 << (unix.SIGTRAP - 1)

// unblockAll unblocks SIGTRAP in all threads: the kernel resets the handler of a
// blocked signal that the processor raises.
func (m *masks) unblockAll() {
	for _, t := range m.o.tracer.threads {
		if t.stopped() {
			m.unblock(t)
		}
	}
}

func (m *masks) unblock(t *thread) {
	if mask, err := ptrace.Sigmask(t.tid); err == nil && mask&trapBit != 0 {
		t.unblocked, t.mask = ptrace.SetSigmask(t.tid, mask&^trapBit) == nil, mask&^trapBit
	}
}

// reblock undoes unblock, unless the program has set another mask since, as
// pthread_create does: what it set then is what it wants. Nor does it where the program
// has a handler for SIGTRAP, in which the signal is blocked: the thread may have been
// there, and have returned since, and would die of its next trap.
func (m *masks) reblock(t *thread) {
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
func (m *masks) openHandlers(t *thread) error {
	s, err := proc.ReadStatus(m.o.proc.PID)
	if err != nil {
		return ended(m.o.proc.PID)
	}
	fresh := s.Caught &^ m.caught &^ trapBit
	if fresh == 0 {
		return nil
	}
	opened, err := m.o.injector.sweep(t, m.o.space.memory, fresh, false)
	if err != nil {
		return err
	}
	m.caught = s.Caught
	return m.noteOpened(m.opened | opened)
}

// noteOpened says in home which handlers are open, for a monitor that comes after us.
func (m *masks) noteOpened(signals uint64) error {
	if signals == m.opened {
		return nil
	}
	m.opened = signals
	return m.o.space.write(m.o.space.home.Opened(), word(signals))
}

// closeHandlers gives them their masks back, in the process or in a child that memory
// belongs to.
func (m *masks) closeHandlers(t *thread, memory *os.File) {
	s, err := proc.ReadStatus(t.pid)
	if err != nil {
		return // it has ended
	}
	if signals := m.opened & s.Caught; signals != 0 {
		_, _ = m.o.injector.sweep(t, memory, signals, true) // the same
	}
	if memory == m.o.space.memory {
		m.caught = 0
		_ = m.noteOpened(0)
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
func (m *masks) verify(t *thread) {
	mask, err := ptrace.Sigmask(t.tid)
	suspect := err == nil && mask != 0 && mask != t.atHit && !m.harmless[mask]
	t.atHit = mask
	if t.checked && !suspect && m.o.node.since(m.checked) < checkEvery {
		return
	}
	t.checked, m.checked = true, m.o.node.Now()
	s, err := proc.ReadStatus(m.o.proc.PID)
	if err != nil || !m.o.space.armed {
		return
	}
	reset := s.Caught&trapBit == 0
	m.judge(mask, reset)
	if reset && m.o.node.since(m.looked) > openEvery {
		m.looked, m.caught = m.o.node.Now(), 0 // look at all of them again
	}
	m.repair = m.repair || reset || (s.Caught&^m.caught)&^trapBit != 0
}

// judge notes what was found where a thread blocks the signals of a mask: one that is
// never met with the handler reset need not be looked at each time.
func (m *masks) judge(mask uint64, reset bool) {
	const most = 64
	if m.harmless == nil || len(m.harmless) == most {
		m.harmless = make(map[uint64]bool)
	}
	known, met := m.harmless[mask]
	m.harmless[mask] = !reset && (known || !met)
}

// reinstall puts the handler back after the kernel reset it: a thread ran into a
// breakpoint with SIGTRAP blocked.
func (m *masks) reinstall() {
	if !m.o.space.armed {
		return
	}
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	m.unblockAll()
	// A failure leaves the breakpoints to the tracer alone; the next check tries again.
	_ = m.o.space.install()
}
