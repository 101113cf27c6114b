//go:build linux && amd64

package linux

import (
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
	lives    lifetimes
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

	child       bool // launched by the monitor and not reaped yet
	ended       bool
	closing     bool
	changedUser bool // the process has executed a program that makes it another user's
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

// run is the owner's goroutine, see onOwnThread.
func (o *owner) run() {
	defer o.node.owners.running.Done()
	o.box.thread.Store(int32(unix.Gettid()))
	o.tracer.precedence.Bind()
	defer o.tracer.precedence.Forget()
	for {
		if c := o.box.take(); c != nil {
			c.do(o)
			continue
		}
		o.chores()
		if o.idle() {
			o.leave()
			if o.node.owners.retire(o) {
				o.meeting.end()
				return
			}
			continue
		}
		o.tracer.wait()
	}
}

// over returns an error if the owner is closing or the process has ended.
func (o *owner) over() error {
	switch {
	case o.closing:
		return errClosed()
	case o.ended:
		return ended(o.proc.PID)
	}
	return nil
}

// attach traces every thread of the process, unless it is over.
func (o *owner) attach() error {
	if err := o.over(); err != nil {
		return err
	}
	return o.tracer.attach()
}

// idle reports whether the owner is not needed any more.
func (o *owner) idle() bool {
	if o.closing || o.ended {
		return true
	}
	return !o.needsTracing() && len(o.tracer.threads) == 0 && !o.child
}

// needsTracing reports whether a watch, a stop or a hold requires tracing.
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

// chores does what must not be done in the middle of another event.
func (o *owner) chores() {
	if o.changedUser {
		o.giveUp()
	}
	o.family.attendBirths()
	o.family.releaseChildren()
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

func (f *family) releaseChildren() {
	for len(f.toRelease) > 0 {
		t := f.toRelease[0]
		f.toRelease = f.toRelease[1:]
		f.release(t)
	}
}

// finish records the end of the process.
func (o *owner) finish() {
	o.family.abandonBirths()
	o.ended = true
	o.child = false
	o.node.released.forget(o.proc)
	for _, t := range o.tracer.threads {
		o.tracer.forget(t)
	}
	clear(o.family.unborn)
	o.space.vacate()
}

// leave releases the whole process: it removes the handler, and then detaches. While the
// signal of a breakpoint may still come, the handler stays. Threads that do not stop in time
// are released by a later call.
func (o *owner) leave() {
	if len(o.tracer.threads) == 0 {
		return
	}
	o.tracer.freeze(nil)
	o.family.attendBirths()
	o.family.releaseChildren()
	if o.tracer.allSettled() {
		o.space.disarm()
	}
	o.tracer.precedence.Begin()
	defer o.tracer.precedence.End()
	for _, t := range o.tracer.threads {
		if !t.stopped() {
			continue
		}
		o.masks.reblock(t)
		t.clearFlag()
		_ = ptrace.Detach(t.tid, 0)
		o.tracer.forget(t)
	}
	o.tracer.endRound()
	o.tracer.thaw()
	o.tracer.whole = false
}

// restIfIdle detaches at once when nothing needs tracing any more, so that the process is not
// traced when the request that removed the last watch or stop returns.
func (o *owner) restIfIdle() {
	if !o.needsTracing() {
		o.leave()
	}
}
