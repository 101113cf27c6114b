//go:build linux && amd64

package linux

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// owner owns a process: the ptrace attachment to its threads, their stops, the
// breakpoints in its memory, the watches on it. All fields but node, proc and
// box belong to its goroutine, which is locked to one OS thread, because the
// kernel lets only the thread that attached make ptrace calls.
//
// It lives while it has anything to do: a watch, a stop, a hold, a child of
// ours to reap.
type owner struct {
	node *Node
	proc omis.ProcID
	box  *mailbox

	threads   map[int]*thread
	unborn    map[int]ptrace.Status // stopped before their creation was told
	offspring []*thread             // stopped children to be let go
	births    []*birth              // those whose creator may be held for them
	whole     bool                  // every thread of the process is in threads
	halted    bool                  // by Stop, all threads, or not set going yet
	pauses    int                   // by Suspend, all threads
	child     bool                  // launched by us and not reaped yet
	ended     bool
	closing   bool

	estranged bool // it has executed a program that makes it another user's

	frozen   int // threads that stop stay stopped while it is positive
	deferred []*thread
	round    uint64

	precedence precedence

	space    *space
	masks    masks
	injector injector
	veil     veil
	meeting  *meeting
	ending   *ending
	lending  lending
	patcher  patcher
	calls    sync.Mutex                  // held while a handler runs, here or on the meeting's server
	watches  map[*watch]struct{}         // those that need tracing
	kinds    map[node.EventKind][]*watch // those without an address, in the order they were set
	watchful int                         // how many of them say how threads are to run
	stepping bool                        // single steps are prepared
	due      []returnPlace               // breakpoints that threads wait for
	notice   *watch                      // on what the dynamic linker tells, while library calls are watched
	loaders  []*thread                   // threads that wait until what they loaded is watched
	looks    []*thread                   // threads that wait to be looked at before their next step
	finished []*watch                    // of ours, to be taken away
	busy     bool                        // hits come one after the other
	hit      *hit                        // the next one to hand out
}

func newOwner(n *Node, p omis.ProcID) *owner {
	o := &owner{
		node: n, proc: p, box: newMailbox(),
		threads: make(map[int]*thread), unborn: make(map[int]ptrace.Status),
		watches: make(map[*watch]struct{}), kinds: make(map[node.EventKind][]*watch),
	}
	o.space, o.masks.o, o.injector.o, o.lending.o, o.patcher.o = &space{o: o}, o, o, o, o
	o.meeting = newMeeting(o)
	o.ending = &ending{o: o}
	return o
}

// spinTime is how long an owner looks for the next hit before it waits for it.
const spinTime = 30 * time.Microsecond

// run is the owner's goroutine, see onOwnThread.
func (o *owner) run() {
	defer o.node.owning.Done()
	o.box.thread.Store(int32(unix.Gettid()))
	o.precedence.thread = unix.Gettid()
	defer o.precedence.forget()
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
		o.wait()
	}
}

// idle tells that nothing stands that needs the owner.
func (o *owner) idle() bool {
	if o.closing || o.ended {
		return true
	}
	return !o.needsTracing() && len(o.threads) == 0 && !o.child
}

// needsTracing tells whether a watch, a stop or a hold stands.
func (o *owner) needsTracing() bool {
	if o.ended {
		return false
	}
	if o.halted || o.pauses > 0 || len(o.watches) > 0 || o.meeting.keeps() || o.ending.last != nil {
		return true
	}
	for _, t := range o.threads {
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
	o.attendBirths()
	o.releaseOffspring()
	o.ending.judge()
	o.takeAway()
	o.plantReturns()
	o.lookAgain()
	o.lookAhead()
	if o.masks.repair && !o.ended {
		o.masks.repair = false
		o.masks.reinstall()
	}
	if len(o.threads) > 0 && !o.needsTracing() {
		o.leave()
	}
}

func (o *owner) releaseOffspring() {
	for len(o.offspring) > 0 {
		t := o.offspring[0]
		o.offspring = o.offspring[1:]
		o.release(t)
	}
}

// wait blocks until the kernel or the mailbox has something.
func (o *owner) wait() {
	if len(o.deferred) > 0 {
		if s, ok := o.poll(); ok {
			o.handle(s)
			return
		}
		o.endRound()
	}
	if len(o.threads) == 0 && !o.child {
		<-o.box.wake
		return
	}
	if o.busy && o.spin() {
		return
	}
	o.box.waiting.Store(true)
	if !o.box.empty() {
		o.box.waiting.Store(false)
		return
	}
	s, err := ptrace.Wait()
	o.box.waiting.Store(false)
	switch {
	case err == nil:
		o.handle(s)
	case errors.Is(err, unix.ECHILD):
		o.deserted()
	}
}

// spin looks for the next hit for a while, leaving the processor to whoever is
// about to make it. It spares the sleep and the wake-up of a wait, which cost
// more than the rest of a hit, most of all across processors. It holds up no
// other goroutine longer than spinTime.
func (o *owner) spin() bool {
	for begin := o.node.Now(); o.node.since(begin) < spinTime && o.box.empty(); {
		if s, ok := o.poll(); ok {
			o.handle(s)
			return true
		}
		ptrace.Yield()
	}
	o.busy = false
	return false
}

// lookAround is how often pump looks for what the kernel does not tell.
const lookAround = 10 * time.Millisecond

// pump handles events until a condition holds or the time is over; it tells
// which.
func (o *owner) pump(patience time.Duration, until func() bool) bool {
	if until() {
		return true
	}
	deadline := time.Now().Add(patience)
	defer o.box.ringEvery(lookAround)()
	for !o.ended && !until() {
		if time.Now().After(deadline) {
			return false
		}
		o.waitKernel()
	}
	return until()
}

// waitKernel is wait without the mailbox: a command must not come in between
// the steps of another.
func (o *owner) waitKernel() {
	o.box.waiting.Store(true)
	s, err := ptrace.Wait()
	o.box.waiting.Store(false)
	switch {
	case err == nil:
		o.handle(s)
	case errors.Is(err, unix.ECHILD):
		o.deserted()
	default:
		o.replaced()
	}
}

// drain hears all the kernel has to tell by now.
func (o *owner) drain() {
	for !o.ended { // an end that is not ours to reap would be told for ever
		s, ok := o.poll()
		if !ok {
			return
		}
		o.handle(s)
		if len(o.deferred) > 0 {
			o.endRound()
		}
	}
}

// endRound lets go the threads that had more than their share of a round. The
// kernel tells stops in the order of its list of threads: without rounds, the
// first few of many busy threads would starve the rest.
func (o *owner) endRound() {
	o.round++
	for _, t := range o.deferred {
		t.deferred = false
		if o.threads[t.tid] == t && !t.stays(o) {
			o.resume(t)
		}
	}
	o.deferred = o.deferred[:0]
}

// deserted is called when there is nobody that we trace.
func (o *owner) deserted() {
	if !o.replaced() {
		o.finish()
	}
}

// finish is the end of the process: nothing of it is left to own.
func (o *owner) finish() {
	o.bury()
	o.ended = true
	o.child = false
	o.node.forgetLetGo(o.proc)
	for _, t := range o.threads {
		o.forget(t)
	}
	for tid := range o.unborn {
		delete(o.unborn, tid)
	}
	o.space.vacate()
}
