//go:build linux && amd64

package linux

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// owner is the goroutine that traces a process, see the package comment. It does the commands
// in its mailbox and handles what the kernel reports. Its parts own the state of the
// process; all belong to its goroutine unless they say otherwise. The goroutine is locked to
// one OS thread, because the kernel lets only the thread that attached make ptrace calls.
//
// An owner lives as long as it is needed: for a watch, a stop, a hold, or a child that it
// has to reap.
type owner struct {
	node *Node
	proc omis.ProcID
	box  *mailbox

	tracer   tracer
	family   family
	halts    halts
	events   events
	space    *space
	masks    masks
	injector injector
	meeting  *meeting
	steps    steps
	library  libraryCalls
	ending   *ending
	lending  lending
	patcher  patcher
	veil     veil

	child     bool // launched by the monitor and not reaped yet
	ended     bool
	closing   bool
	estranged bool // the process has executed a program that makes it another user's
}

func newOwner(n *Node, p omis.ProcID) *owner {
	o := &owner{node: n, proc: p, box: newMailbox()}
	o.tracer = tracer{o: o, threads: make(map[int]*thread)}
	o.family = family{o: o, unborn: make(map[int]ptrace.Status)}
	o.events = events{o: o, watches: make(map[*watch]struct{}), kinds: make(map[node.EventKind][]*watch)}
	o.space, o.meeting, o.ending = &space{o: o}, newMeeting(o), &ending{o: o}
	o.halts.o, o.masks.o, o.injector.o, o.steps.o, o.library.o, o.lending.o, o.patcher.o = o, o, o, o, o, o, o
	return o
}

// spinTime is how long an owner looks for the next hit before it waits for it.
const spinTime = 30 * time.Microsecond

// run is the owner's goroutine, see onOwnThread.
func (o *owner) run() {
	defer o.node.owning.Done()
	o.box.thread.Store(int32(unix.Gettid()))
	o.tracer.precedence.thread = unix.Gettid()
	defer o.tracer.precedence.forget()
	for {
		if c := o.box.take(); c != nil {
			c.do(o)
			continue
		}
		o.chores()
		if o.idle() {
			o.leave()
			if o.node.retire(o) {
				o.meeting.end()
				return
			}
			continue
		}
		o.tracer.wait()
	}
}

// idle tells that nothing stands that needs the owner.
func (o *owner) idle() bool {
	if o.closing || o.ended {
		return true
	}
	return !o.needsTracing() && len(o.tracer.threads) == 0 && !o.child
}

// needsTracing tells whether a watch, a stop or a hold stands.
func (o *owner) needsTracing() bool {
	if o.ended {
		return false
	}
	if o.halts.halted || o.halts.pauses > 0 || len(o.events.watches) > 0 || o.meeting.keeps() || o.ending.last != nil {
		return true
	}
	for _, t := range o.tracer.threads {
		if t.holds > 0 || t.isHalted(o) || t.isPaused(o) {
			return true
		}
	}
	return false
}

// chores are what must not be done in the middle of another event.
func (o *owner) chores() {
	if o.estranged {
		o.renounce()
	}
	o.family.attendBirths()
	o.family.releaseOffspring()
	o.ending.judge()
	o.steps.takeAway()
	o.library.plantReturns()
	o.library.lookAgain()
	o.steps.lookAhead()
	if o.masks.repair && !o.ended {
		o.masks.repair = false
		o.masks.reinstall()
	}
	if len(o.tracer.threads) > 0 && !o.needsTracing() {
		o.leave()
	}
}

func (f *family) releaseOffspring() {
	for len(f.offspring) > 0 {
		t := f.offspring[0]
		f.offspring = f.offspring[1:]
		f.release(t)
	}
}

// wait blocks until the kernel or the mailbox has something.
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
	s, err := ptrace.Wait()
	tr.o.box.waiting.Store(false)
	switch {
	case err == nil:
		tr.handle(s)
	case errors.Is(err, unix.ECHILD):
		tr.deserted()
	}
}

// spin looks for the next hit for a while, leaving the processor to whoever is
// about to make it. It spares the sleep and the wake-up of a wait, which cost
// more than the rest of a hit, most of all across processors. It holds up no
// other goroutine longer than spinTime.
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

// lookAround is how often pump looks for what the kernel does not tell.
const lookAround = 10 * time.Millisecond

// pump handles events until a condition holds or the time is over; it tells
// which.
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

// waitKernel is wait without the mailbox: a command must not come in between
// the steps of another.
func (tr *tracer) waitKernel() {
	tr.o.box.waiting.Store(true)
	s, err := ptrace.Wait()
	tr.o.box.waiting.Store(false)
	switch {
	case err == nil:
		tr.handle(s)
	case errors.Is(err, unix.ECHILD):
		tr.deserted()
	default:
		tr.replaced()
	}
}

// drain hears all the kernel has to tell by now.
func (tr *tracer) drain() {
	for !tr.o.ended { // an end that is not ours to reap would be told for ever
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

// endRound lets go the threads that had more than their share of a round. The
// kernel tells stops in the order of its list of threads: without rounds, the
// first few of many busy threads would starve the rest.
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

// deserted is called when there is nobody that we trace.
func (tr *tracer) deserted() {
	if !tr.replaced() {
		tr.o.finish()
	}
}

// finish is the end of the process: nothing of it is left to own.
func (o *owner) finish() {
	o.family.bury()
	o.ended = true
	o.child = false
	o.node.forgetLetGo(o.proc)
	for _, t := range o.tracer.threads {
		o.tracer.forget(t)
	}
	for tid := range o.family.unborn {
		delete(o.family.unborn, tid)
	}
	o.space.vacate()
}
