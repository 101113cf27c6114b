//go:build linux && amd64

package linux

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// reapEvery is the interval at which the reaper checks, and the time after which it begins.
const reapEvery = 5 * time.Millisecond

// reaper reaps dead threads of a process while their owner cannot, because it waits to attach
// another one.
//
// PTRACE_SEIZE waits until an execve of the process is over (cred_guard_mutex). The execve
// waits until the other threads of the process are gone, and a traced thread is gone when its
// tracer has reaped it. But the owner waits, so without the reaper both would wait for ever.
// The kernel lets any thread of the tracer's process reap a tracee.
type reaper struct {
	pid int

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	dead  []int
}

// startReaper begins to check for dead threads after a while.
func startReaper(pid int) *reaper {
	m := &reaper{pid: pid}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = time.AfterFunc(reapEvery, m.look)
	return m
}

// look reaps dead threads, except the first thread: an execve does not wait until that is
// reaped, and its end is the end of the process.
func (m *reaper) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	tids, _ := proc.Threads(m.pid) // none if the process has ended
	for _, tid := range tids {
		if tid != m.pid && ptrace.ReapDead(tid) {
			m.dead = append(m.dead, tid)
		}
	}
	m.timer.Reset(reapEvery)
}

// end stops the checks and returns the threads that were reaped.
func (m *reaper) end() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	m.timer.Stop()
	return m.dead
}

// seizeThread attaches one thread.
func (tr *tracer) seizeThread(tid int) error {
	m := startReaper(tr.o.proc.PID)
	err := ptrace.Seize(tid)
	for _, dead := range m.end() {
		if t := tr.threads[dead]; t != nil {
			tr.gone(ptrace.Status{TID: dead, Cause: ptrace.Exited}, t)
		}
		if dead == tid {
			err = unix.ESRCH // the thread was attached, and killed at once
		}
	}
	return err
}
