//go:build linux && amd64

package linux

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stepBackAfter is how long an owner keeps its precedence after it was needed. To
// step back at once would put it, running, at the end of the queue behind those
// it has just woken; a moment later it sleeps, and loses no turn.
const stepBackAfter = time.Millisecond

// precedence is that of an owner's thread over all ordinary threads, while it
// wakes many of them: each would take the processor away from it before it has
// woken the rest, and of fifty that are busy the last would go on tenths of a
// second after the first. It takes CAP_SYS_NICE or RLIMIT_RTPRIO; without them
// the owner has to queue.
//
// Handlers never run with it (see newHit), nor does anything that waits for an
// ordinary thread: begin and end enclose system calls that do not block.
type precedence struct {
	thread int // the owner's thread

	mu     sync.Mutex // the owner and the timer step back
	usual  *unix.SchedAttr
	timer  *time.Timer
	needed bool // between begin and end
}

// begin is called by the owner. A thread that has a precedence of its own keeps it.
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
	// Threads that Go makes meanwhile, out of this one, are ordinary ones. The flag
	// stays: to take it away again takes a privilege.
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

// expire is called by the timer, whose time may have been over just before begin
// stopped it.
func (p *precedence) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.needed {
		p.restore()
	}
}

// stepBack is called by the owner before it does anything that others should not
// wait for.
func (p *precedence) stepBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restore()
}

func (p *precedence) restore() {
	if p.usual == nil {
		return
	}
	// Going back takes no privilege.
	_ = unix.SchedSetAttr(p.thread, p.usual, 0)
	p.usual = nil
}

// forget is called before the owner's thread ends: its number may become that of
// another thread. That it ends at once is all the better.
func (p *precedence) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usual = nil
}
