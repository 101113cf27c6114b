//go:build linux && amd64

package linux

import (
	"mirador/omis/linux/ptrace"
)

// stopKind says in which kind of ptrace-stop a thread is.
type stopKind uint8

const (
	running   stopKind = iota
	listening          // in a group-stop, where it stays until SIGCONT
	trapStop           // interrupted, or new
	groupStop          // interrupted while in a group-stop
	hitStop            // at a breakpoint, already moved to the copy
	eventStop          // inside clone, fork, vfork or execve
	callStop           // behind a system call
	entryStop          // before a system call
	exitStop           // at its end, where it executes nothing more
)

// thread is a tracee. Its owner's goroutine alone uses it.
type thread struct {
	tid  int
	pid  int // of its process: the owner's, but for a child that shares its memory
	kind role

	parent  int     // the thread that created it, where that was seen
	waiting *thread // the parent that waits until this offspring is let go

	stop stopKind

	holds     int    // handlers that keep it (Hit.Hold)
	newborn   bool   // one of the holds is that of its birth
	halted    bool   // by Stop
	pauses    int    // by Suspend, besides those of all threads; negative: resumed from those
	asked     bool   // PTRACE_INTERRUPT was sent, its stop is still to come
	unblocked bool   // SIGTRAP was blocked, and is to be again
	mask      uint64 // the signals blocked since then, as long as the program leaves it at that
	atHit     uint64 // the signals blocked at its last hit
	checked   bool   // the handler was found in place after its first hit
	regroup   bool   // was taken out of a group-stop
	deferred  bool   // waits for the end of the round, see owner.round

	served uint8  // hits in this round
	round  uint64 // the round that served counts in

	injection   *injection  // the system call it is making for us, or was to make
	options     int         // of ptrace, besides ptrace.Options
	received    received    // the signal it is held for
	call        systemCall  // the one it is in, while those are watched
	interrupted interrupted // calls that were, and are told once
	fresh       bool        // it executes another program, and is inside execve yet
	stepper     stepper
}

// role is what a tracee is to its owner.
type role uint8

const (
	member    role = iota // a thread of the process
	stranger              // one of the process that is not observed any more (LetGo)
	guest                 // a vfork child: it shares the memory, its hits are nobody's
	offspring             // a fork child that awaits its first stop, to be cleaned and let go
	emigrant              // a guest that has executed a program of its own, and awaits a stop before it
)

// isHalted tells whether Stop keeps it.
func (t *thread) isHalted(o *owner) bool { return t.kind == member && (t.halted || o.halts.halted) }

// isPaused tells whether Suspend keeps it.
func (t *thread) isPaused(o *owner) bool { return t.kind == member && o.halts.pauses+t.pauses > 0 }

func (t *thread) stopped() bool { return t.stop > listening }

// inEvent reports whether a thread is stopped inside the kernel, at a point where it can
// make no system call for us.
func (t *thread) inEvent() bool { return t.stop == eventStop || t.stop == exitStop }

// groupStopped tells whether a stopped thread takes part in a group-stop: it executes
// nothing of its program, even where it has left that for a system call of ours.
func (t *thread) groupStopped() bool { return t.stop == groupStop || t.regroup }

// stays tells whether something stands on the thread that keeps it stopped.
func (t *thread) stays(o *owner) bool {
	if t.stop == exitStop {
		return o.ending.last == t // what else keeps threads must not keep them from ending
	}
	if o.tracer.frozen > 0 || t.holds > 0 || t.makesCall() {
		return true
	}
	return t.isHalted(o) || t.isPaused(o)
}

// settle is called when a stop has been dealt with: the thread goes on, or the
// stop is taken so that the kernel does not tell it again. A child that is to be let go
// can be so anywhere but inside of an event.
func (tr *tracer) settle(t *thread) {
	switch {
	case t.makesCall() || t.kind < offspring && t.stays(tr.o):
		ptrace.Reap(t.tid)
	case t.kind < offspring:
		tr.resume(t)
	case t.stop == eventStop:
		tr.pass(t, 0)
	default:
		tr.o.family.arrived(t)
	}
}

// resume lets a stopped thread go on. ESRCH means that it was killed meanwhile;
// its end will be told.
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
			// It left its group-stop for a system call of ours, and has to go back.
			t.regroup = false
			t.asked = ptrace.Interrupt(t.tid) == nil
		}
		tr.proceed(t, 0)
	}
}

// proceed lets a stopped thread run, as far as what is watched asks for.
func (tr *tracer) proceed(t *thread, sig int) {
	switch {
	case t.fresh:
		// Inside execve it can make no system calls for us, behind it it can.
		t.stop = running
		_ = ptrace.Syscall(t.tid, sig)
		return
	case tr.o.events.watchful == 0 || t.kind != member:
	case tr.o.steps.wants(t):
		tr.o.steps.step(t, sig)
		return
	case tr.o.events.callsMatter(t):
		t.clearFlag()
		t.stop = running
		_ = ptrace.Syscall(t.tid, sig)
		return
	}
	t.clearFlag()
	t.stop = running
	_ = ptrace.Cont(t.tid, sig)
}

// interrupt asks a running thread to stop.
func (tr *tracer) interrupt(t *thread) {
	if t.stopped() || t.asked {
		return
	}
	t.asked = ptrace.Interrupt(t.tid) == nil
}

// resumeAll lets those threads go on that nothing keeps any more. New processes wait to be
// let go otherwise: one that ran before it is clean would come to a breakpoint.
func (tr *tracer) resumeAll() {
	tr.precedence.begin()
	defer tr.precedence.end()
	for _, t := range tr.threads {
		if t.stopped() && !t.deferred && t.kind < offspring && !t.stays(tr.o) {
			tr.resume(t)
		}
	}
}
