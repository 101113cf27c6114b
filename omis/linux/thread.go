//go:build linux && amd64

package linux

import (
	"mirador/omis/linux/ptrace"
)

// stopKind is the kind of ptrace-stop that a thread is in.
type stopKind uint8

const (
	running   stopKind = iota
	listening          // in a group-stop, where it stays until SIGCONT
	trapStop           // interrupted, or new
	groupStop          // interrupted while in a group-stop
	hitStop            // at a breakpoint, already moved to the copy
	eventStop          // inside clone, fork, vfork or execve
	callStop           // after a system call
	entryStop          // before a system call
	exitStop           // at its end; it executes nothing more
)

// thread is a tracee. It belongs to its owner's goroutine.
type thread struct {
	tid  int
	pid  int // of its process, which is the owner's unless it is a child
	kind role
	life uint64 // see node.Hit; counted by Node.lives

	parent  int     // the thread that created it, 0 if that is not known
	waiting *thread // the parent that waits until this child is released

	stop stopKind

	holds     int    // number of handlers that keep it (Hit.Hold)
	newborn   bool   // one of the holds is for its birth
	halted    bool   // by Stop
	pauses    int    // by Suspend of this thread, in addition to those of the process; negative if Resume undid those
	asked     bool   // PTRACE_INTERRUPT was sent, and its stop is still to come
	unblocked bool   // the program had blocked SIGTRAP; we unblocked it, and must block it again
	mask      uint64 // the signals it has blocked since then, unless the program sets others
	atHit     uint64 // the signals blocked at its last hit
	checked   bool   // the handler was found installed after its first hit
	regroup   bool   // it was taken out of a group-stop
	deferred  bool   // it waits for the end of the round, see tracer.endRound

	served uint8  // hits in this round
	round  uint64 // the round in which served counts

	injection   *injection  // the system call that it makes for the monitor, or has yet to make
	options     int         // of ptrace, besides ptrace.Options
	received    received    // the signal for which it is held
	call        systemCall  // its current one, while system calls are watched
	followed    bool        // its system calls are watched since it last continued
	interrupted interrupted // calls that were interrupted, and are reported once
	fresh       bool        // it executes another program, and is still inside execve
	stepper     stepper
}

// role is the relation of a tracee to its owner.
type role uint8

const (
	member      role = iota // a thread of the process
	unobserved              // a thread of the process that is not observed any more (LetGo)
	vforked                 // a vfork child, which shares the memory; its hits are not reported
	forked                  // a fork child before its first stop, after which it is cleaned and released
	vforkedExec             // a vforked child that has executed a program, before its first stop in it
)

// isHalted reports whether Stop keeps the thread stopped.
func (t *thread) isHalted(o *owner) bool { return t.kind == member && (t.halted || o.halts.halted) }

// isPaused reports whether Suspend keeps the thread stopped.
func (t *thread) isPaused(o *owner) bool { return t.kind == member && o.halts.pauses+t.pauses > 0 }

func (t *thread) stopped() bool { return t.stop > listening }

// inEvent reports whether a thread is stopped inside the kernel, at a point where it can
// make no system call for the monitor.
func (t *thread) inEvent() bool { return t.stop == eventStop || t.stop == exitStop }

// groupStopped reports whether a stopped thread takes part in a group-stop. It executes
// nothing of its program then, even if it has left the group-stop for a call for the monitor.
func (t *thread) groupStopped() bool { return t.stop == groupStop || t.regroup }

// stays reports whether something keeps the thread stopped.
func (t *thread) stays(o *owner) bool {
	if t.stop == exitStop {
		return o.ending.last == t // nothing else may keep a thread from ending
	}
	if o.tracer.frozen > 0 || t.holds > 0 || t.makesCall() {
		return true
	}
	return t.isHalted(o) || t.isPaused(o)
}

// settle is called when a stop was handled: the thread continues, or the stop is reaped so
// that the kernel does not report it again. A child that is to be released can be released
// anywhere except inside an event.
func (tr *tracer) settle(t *thread) {
	switch {
	case t.makesCall() || t.kind < forked && t.stays(tr.o):
		ptrace.Reap(t.tid)
	case t.kind < forked:
		tr.resume(t)
	case t.stop == eventStop:
		tr.pass(t, 0)
	default:
		tr.o.family.arrived(t)
	}
}

// resume continues a stopped thread. ESRCH means that it was killed; its end will be reported.
func (tr *tracer) resume(t *thread) {
	switch {
	case !t.stopped():
	case t.stop == exitStop:
		t.stop = running
		_ = ptrace.Cont(t.tid, 0)
	case t.stop == groupStop:
		t.stop = listening
		_ = ptrace.Listen(t.tid)
	default:
		if t.regroup {
			// It left its group-stop for a call for the monitor, and has to return to it.
			t.regroup = false
			t.asked = ptrace.Interrupt(t.tid) == nil
		}
		tr.proceed(t, 0)
	}
}

// proceed continues a stopped thread up to the next stop that a watch needs.
func (tr *tracer) proceed(t *thread, sig int) {
	switch {
	case t.fresh:
		// Inside execve the thread can make no calls for the monitor; after it, it can.
		t.stop = running
		_ = ptrace.Syscall(t.tid, sig)
		return
	case tr.o.events.watchful == 0 || t.kind != member:
	case tr.o.steps.wants(t):
		tr.o.steps.step(t, sig)
		return
	case tr.o.events.callsMatter(t):
		t.follow()
		t.clearFlag()
		t.stop = running
		_ = ptrace.Syscall(t.tid, sig)
		return
	}
	t.unfollow()
	t.clearFlag()
	t.stop = running
	_ = ptrace.Cont(t.tid, sig)
}

// interrupt requests a stop of a running thread.
func (tr *tracer) interrupt(t *thread) {
	if t.stopped() || t.asked {
		return
	}
	t.asked = ptrace.Interrupt(t.tid) == nil
}

// resumeAll continues the threads that nothing keeps any more, except new processes. These are
// released elsewhere: before the breakpoints are removed from its memory, a new process must
// not run, because it could reach one of them.
func (tr *tracer) resumeAll() {
	tr.precedence.Begin()
	defer tr.precedence.End()
	for _, t := range tr.threads {
		if t.stopped() && !t.deferred && t.kind < forked && !t.stays(tr.o) {
			tr.resume(t)
		}
	}
}
