//go:build linux && amd64

package linux

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bell is the signal that interrupts the waitid of an owner. Go's runtime handles every
// real-time signal, and ignores those that no code has asked for.
const bell = unix.Signal(46)

// ringAgain is the delay after which a ring is repeated, because it may have come between the
// owner's last look at its mailbox and its system call.
const ringAgain = 300 * time.Microsecond

// command is a function that an owner executes on its goroutine.
type command interface{ do(o *owner) }

// task is a command whose sender waits for the result.
type task interface{ do(o *owner) error }

// answer reports that a command is done.
type answer struct {
	done chan struct{}
	err  error
}

func newAnswer() *answer { return &answer{done: make(chan struct{})} }

func (a *answer) give(err error) {
	a.err = err
	close(a.done)
}

func (a *answer) wait() error {
	<-a.done
	return a.err
}

// question is the command to do a task and to answer.
type question struct {
	*answer
	task task
}

func (q question) do(o *owner) { q.give(q.task.do(o)) }

// mailbox brings commands to an owner, which waits for them and for the kernel at the same
// time. waiting means that the owner is, or is about to be, in a system call that only the
// bell interrupts.
type mailbox struct {
	thread  atomic.Int32 // the owner's thread id
	waiting atomic.Bool
	again   atomic.Bool   // a ring will be repeated
	wake    chan struct{} // for an owner without tracees

	mu     sync.Mutex
	queue  []command
	closed bool
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post appends a command, and returns false if the owner has ended. It never blocks.
func (m *mailbox) post(c command) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.queue = append(m.queue, c)
	m.mu.Unlock()
	m.ring()
	return true
}

// ask posts a task; posted is false if the owner has ended.
func (m *mailbox) ask(t task) (a *answer, posted bool) {
	q := question{newAnswer(), t}
	return q.answer, m.post(q)
}

// ring wakes the owner to look at its mailbox, now or a moment later. The ring is repeated once for
// all commands that wait: the kernel queues each real-time signal, so a repetition for every
// command would keep the owner's thread in its signal handler.
func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
	if m.waiting.Load() {
		// ESRCH means that the owner's thread has ended and needs no ring.
		_ = unix.Tgkill(os.Getpid(), int(m.thread.Load()), bell)
		if m.again.CompareAndSwap(false, true) {
			time.AfterFunc(ringAgain, m.ringUntilTaken)
		}
	}
}

func (m *mailbox) ringUntilTaken() {
	m.again.Store(false) // first: a command that comes after the check below repeats its ring
	if !m.empty() {
		m.ring()
	}
}

// ringEvery rings repeatedly, so that none can be missed, until stop is called.
func (m *mailbox) ringEvery(d time.Duration) (stop func()) {
	ticker := time.NewTicker(d)
	done := make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.ring()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) == 0
}

func (m *mailbox) take() command {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return nil
	}
	c := m.queue[0]
	m.queue = m.queue[1:]
	return c
}

// close refuses further commands, unless one is waiting.
func (m *mailbox) close() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) > 0 {
		return false
	}
	m.closed = true
	return true
}
