//go:build linux && amd64

package linux

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/precedence"
	"mirador/omis/linux/ptrace"
)

// tracer owns the attachment to the threads of the process, and their stops. It belongs to the
// owner's goroutine.
type tracer struct {
	o          *owner
	threads    map[int]*thread
	whole      bool      // every thread of the process is in threads
	frozen     int       // while positive, threads that stop stay stopped
	deferred   []*thread // threads that wait for the end of the round
	round      uint64    // see endRound
	busy       bool      // hits follow each other closely
	precedence precedence.Thread
}

// spinTime is the time for which an owner polls for the next hit before it waits for it.
const spinTime = 30 * time.Microsecond

// wait blocks until the kernel reports something or a command comes in.
func (tr *tracer) wait() {
	if len(tr.deferred) > 0 {
		if s, ok := tr.poll(); ok {
			tr.handle(s)
			return
		}
		tr.endRound()
	}
	if len(tr.threads) == 0 && !tr.o.child {
		<-tr.o.box.wake
		return
	}
	if tr.busy && tr.spin() {
		return
	}
	tr.o.box.waiting.Store(true)
	if !tr.o.box.empty() {
		tr.o.box.waiting.Store(false)
		return
	}
	_ = tr.handleNext() // the bell may have interrupted it
}

// handleNext waits for the kernel, and returns an error if the bell has interrupted it.
func (tr *tracer) handleNext() error {
	s, err := ptrace.Wait()
	tr.o.box.waiting.Store(false)
	switch {
	case err == nil:
		tr.handle(s)
	case errors.Is(err, unix.ECHILD):
		tr.deserted()
	default:
		return err
	}
	return nil
}

// spin polls for the next hit for a while, and yields the processor to the thread that is
// about to make it. That saves the sleep and the wake-up of a wait, which cost more than the
// rest of a hit, most of all between processors. It delays no other goroutine longer than
// spinTime.
func (tr *tracer) spin() bool {
	for begin := tr.o.node.Now(); tr.o.node.since(begin) < spinTime && tr.o.box.empty(); {
		if s, ok := tr.poll(); ok {
			tr.handle(s)
			return true
		}
		ptrace.Yield()
	}
	tr.busy = false
	return false
}

// lookAround is the interval at which pump checks for what the kernel does not report.
const lookAround = 10 * time.Millisecond

// pump handles events until a condition holds, and returns false if the time is over before.
func (tr *tracer) pump(patience time.Duration, until func() bool) bool {
	if until() {
		return true
	}
	deadline := time.Now().Add(patience)
	defer tr.o.box.ringEvery(lookAround)()
	for !tr.o.ended && !until() {
		if time.Now().After(deadline) {
			return false
		}
		tr.waitKernel()
	}
	return until()
}

// waitKernel is wait without the mailbox: a command must not be done between the steps of
// another.
func (tr *tracer) waitKernel() {
	tr.o.box.waiting.Store(true)
	if tr.handleNext() != nil {
		tr.replaced()
	}
}

// drain handles all that the kernel has to report now.
func (tr *tracer) drain() {
	for !tr.o.ended { // the kernel would report for ever an end that this owner must not reap
		s, ok := tr.poll()
		if !ok {
			return
		}
		tr.handle(s)
		if len(tr.deferred) > 0 {
			tr.endRound()
		}
	}
}

// endRound continues the threads that had their share of a round. The kernel reports stops in
// the order of its list of threads: without rounds, the first few of many busy threads would
// starve the others.
func (tr *tracer) endRound() {
	tr.round++
	for _, t := range tr.deferred {
		t.deferred = false
		if tr.threads[t.tid] == t && !t.stays(tr.o) {
			tr.resume(t)
		}
	}
	tr.deferred = tr.deferred[:0]
}

// deserted is called when the owner has no tracee.
func (tr *tracer) deserted() {
	if !tr.replaced() {
		tr.o.finish()
	}
}
