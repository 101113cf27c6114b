//go:build linux && amd64

package linux

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// If a thread runs into a breakpoint while it blocks SIGTRAP, the kernel resets the handler
// for all threads, and without a monitor the process dies. So while breakpoints exist, no
// thread blocks SIGTRAP as far as possible: neither by its own mask nor by the masks of the
// program's signal handlers. If a thread sets a new mask meanwhile, the monitor notices at the
// thread's next hit.

// masks owns what is known of the signals that threads and the program's handlers block. It
// belongs to the owner's goroutine.
type masks struct {
	o *owner

	opened   uint64          // signals with a handler whose mask contained SIGTRAP, which we removed
	caught   uint64          // signals whose handlers were checked for that
	looked   int64           // when all handlers were last checked
	harmless map[uint64]bool // masks met at hits; see judge
	checked  int64           // when the resident handler was last found installed
	repair   bool            // the resident handler was found missing, or the program has installed other handlers
}

// reset forgets the handlers of a program that has ended.
func (m *masks) reset() { *m = masks{o: m.o, checked: m.checked} }

// trapBit is SIGTRAP in a set of signals.
const trapBit = 1 << (unix.SIGTRAP - 1)

// unblockAll unblocks SIGTRAP in all stopped threads.
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

// reblock undoes unblock, unless the program has set another mask since, as pthread_create
// does. It also does nothing if the program handles SIGTRAP: the thread may have been in that
// handler, which blocks the signal, and have returned since; then its next trap would kill it.
func (m *masks) reblock(t *thread) {
	if !t.unblocked {
		return
	}
	if mask, err := ptrace.Sigmask(t.tid); err == nil && mask == t.mask {
		_ = ptrace.SetSigmask(t.tid, mask|trapBit)
	}
	t.unblocked = false
}

// openHandlers removes SIGTRAP from the masks of those signal handlers of the program that
// were not checked yet.
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

// noteOpened records in home which handlers were changed, for a later monitor.
func (m *masks) noteOpened(signals uint64) error {
	if signals == m.opened {
		return nil
	}
	m.opened = signals
	return m.o.space.write(m.o.space.home.Opened(), word(signals))
}

// closeHandlers restores the masks of handlers, in the process or in the child that memory
// belongs to.
func (m *masks) closeHandlers(t *thread, memory *os.File) {
	s, err := proc.ReadStatus(t.pid)
	if err != nil {
		return // the process has ended
	}
	if signals := m.opened & s.Caught; signals != 0 {
		_, _ = m.o.injector.sweep(t, memory, signals, true) // the same
	}
	if memory == m.o.space.memory {
		m.caught = 0
		_ = m.noteOpened(0)
	}
}

// How often to check whether the resident handler is installed, and how often at least to
// check whether the program has set its own handlers again with the former masks.
const (
	checkEvery = 50 * time.Millisecond
	openEvery  = time.Second
)

// verify checks whether the resident handler is still installed: now and then, at a thread's
// first hit, and if a thread blocks other signals than at its last hit, since the kernel
// unblocks SIGTRAP in the thread when it resets the handler. It also checks whether the
// program has set new handlers of its own.
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
		m.looked, m.caught = m.o.node.Now(), 0 // check all of them again
	}
	m.repair = m.repair || reset || (s.Caught&^m.caught)&^trapBit != 0
}

// judge records whether the handler was found reset at a hit with a mask. A mask for which it never
// was need not be checked at each hit.
func (m *masks) judge(mask uint64, reset bool) {
	const most = 64
	if m.harmless == nil || len(m.harmless) == most {
		m.harmless = make(map[uint64]bool)
	}
	known, met := m.harmless[mask]
	m.harmless[mask] = !reset && (known || !met)
}

// reinstall installs the handler again after the kernel reset it.
func (m *masks) reinstall() {
	if !m.o.space.armed {
		return
	}
	m.o.tracer.freeze(nil)
	defer m.o.tracer.thaw()
	m.unblockAll()
	// If this fails, only the tracer handles the breakpoints; the next check tries again.
	_ = m.o.space.install()
}
