//go:build linux && amd64

package linux

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
)

// mournEvery is how long an attachment may take before, and between, looks for
// the dead it may be waiting for.
const mournEvery = 5 * time.Millisecond

// mourner reaps dead threads of a process while their owner cannot, because it
// waits to attach another one.
//
// PTRACE_SEIZE waits until an execve of the process is over (cred_guard_mutex).
// The execve waits until the process's other threads are gone, and those that
// are traced already are gone when they have been reaped. That is the owner's
// to do, who is waiting: without a third party, for ever. The kernel lets any
// thread of the tracer's process reap a tracee.
type mourner struct {
	pid int

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	dead  []int
}

// mourn begins to look for dead threads, a while from now.
func mourn(pid int) *mourner {
	m := &mourner{pid: pid}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = time.AfterFunc(mournEvery, m.look)
	return m
}

// look reaps who is dead. The first thread is left alone: an execve does not
// wait for its being reaped, and its end is the process's.
func (m *mourner) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	tids, _ := proc.Threads(m.pid) // none when the process is gone
	for _, tid := range tids {
		if tid != m.pid && ptrace.ReapDead(tid) {
			m.dead = append(m.dead, tid)
		}
	}
	m.timer.Reset(mournEvery)
}

// end stops looking and lists the threads that were reaped.
func (m *mourner) end() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	m.timer.Stop()
	return m.dead
}

// seizeThread attaches one thread.
func (tr *tracer) seizeThread(tid int) error {
	m := mourn(tr.o.proc.PID)
	err := ptrace.Seize(tid)
	for _, dead := range m.end() {
		if t := tr.threads[dead]; t != nil {
			tr.gone(ptrace.Status{TID: dead, Cause: ptrace.Exited}, t)
		}
		if dead == tid {
			err = unix.ESRCH // attached, and killed at once
		}
	}
	return err
}
