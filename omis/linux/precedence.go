//go:build linux && amd64

package linux

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stepBackAfter is the time for which an owner keeps its precedence after it was needed. If it
// gave it up at once, while running, it would be queued behind the threads that it has just
// woken; a moment later it sleeps, and loses no turn.
const stepBackAfter = time.Millisecond

// precedence is the priority of an owner's thread over all ordinary threads while it wakes
// many of them. Each of these would take the processor from it before it has woken the rest;
// of fifty busy threads the last would continue tenths of a second after the first. It
// requires CAP_SYS_NICE or RLIMIT_RTPRIO.
//
// Handlers never run with it (see newHit), nor does anything that waits for an ordinary
// thread: begin and end enclose only system calls that do not block.
type precedence struct {
	thread int // the owner's thread

	mu     sync.Mutex // both the owner and the timer step back
	usual  *unix.SchedAttr
	timer  *time.Timer
	needed bool // between begin and end
}

// begin is called by the owner. A thread that already has a higher priority keeps it.
func (p *precedence) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.usual != nil {
		return
	}
	usual, err := unix.SchedGetAttr(p.thread, 0)
	if err != nil || usual.Policy != unix.SCHED_NORMAL && usual.Policy != unix.SCHED_BATCH {
		return
	}
	// Threads that Go creates from this one meanwhile are ordinary ones. The flag stays,
	// since clearing it requires a privilege.
	usual.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}
	if unix.SchedSetAttr(p.thread, &first, 0) == nil {
		p.usual = usual
	}
}

// end has the owner step back soon.
func (p *precedence) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed = false
	if p.usual != nil {
		p.timer = time.AfterFunc(stepBackAfter, p.expire)
	}
}

// expire is called by the timer, which may have fired just before begin stopped it.
func (p *precedence) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.needed {
		p.restore()
	}
}

// stepBack is called by the owner before it does anything that other threads should not wait
// for.
func (p *precedence) stepBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restore()
}

func (p *precedence) restore() {
	if p.usual == nil {
		return
	}
	// Stepping back requires no privilege.
	_ = unix.SchedSetAttr(p.thread, p.usual, 0)
	p.usual = nil
}

// forget is called before the owner's thread ends, because another thread may get its id.
func (p *precedence) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usual = nil
}
