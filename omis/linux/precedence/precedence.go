//go:build linux

// Package precedence gives an owner's thread priority while it continues many threads.
//
// Only omis/linux imports it. A Thread is used by the owner's goroutine; its timer runs on a
// goroutine of its own.
package precedence

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stepBackAfter is the time for which an owner keeps its precedence after it was needed. If the
// owner gave it up at once, while it runs, the kernel would queue it behind the threads that it
// has just woken. A moment later the owner sleeps, and is not queued.
const stepBackAfter = time.Millisecond

// Thread is an OS thread that can have priority over all ordinary threads while it wakes many of
// them. Each of these would take the processor from it before it has woken the rest; of fifty
// busy threads the last would continue tenths of a second after the first. The priority requires
// CAP_SYS_NICE or RLIMIT_RTPRIO.
//
// Handlers never run with it (call StepBack before), nor does anything that waits for an ordinary
// thread: Begin and End enclose only system calls that do not block.
type Thread struct {
	tid int

	mu     sync.Mutex // both the owner and the timer step back
	usual  *unix.SchedAttr
	timer  *time.Timer
	needed bool // between Begin and End
}

// Bind makes t the calling OS thread, to which its goroutine is locked.
func (t *Thread) Bind() { t.tid = unix.Gettid() }

// Begin is called by the owner. A thread that already has a higher priority keeps it.
func (t *Thread) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.needed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.usual != nil {
		return
	}
	usual, err := unix.SchedGetAttr(t.tid, 0)
	if err != nil || usual.Policy != unix.SCHED_NORMAL && usual.Policy != unix.SCHED_BATCH {
		return
	}
	// Threads that Go creates from this one meanwhile are ordinary ones. The flag stays,
	// since clearing it requires a privilege.
	usual.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}
	if unix.SchedSetAttr(t.tid, &first, 0) == nil {
		t.usual = usual
	}
}

// End makes the owner step back soon.
func (t *Thread) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.needed = false
	if t.usual != nil {
		t.timer = time.AfterFunc(stepBackAfter, t.expire)
	}
}

// expire is called by the timer, which may have fired just before Begin stopped it.
func (t *Thread) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.needed {
		t.restore()
	}
}

// StepBack is called by the owner before it does anything that other threads should not wait
// for.
func (t *Thread) StepBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.restore()
}

func (t *Thread) restore() {
	if t.usual == nil {
		return
	}
	// Stepping back requires no privilege.
	_ = unix.SchedSetAttr(t.tid, t.usual, 0)
	t.usual = nil
}

// Forget is called before the owner's thread ends, because another thread may get its id.
func (t *Thread) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usual = nil
}
