//go:build linux && amd64

package linux

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// ending holds a process at its exit for the watches that ask for it (node.Watch.Hold).
// The kernel stops each thread at its end (PTRACE_EVENT_EXIT), before the thread gives up
// its memory. All threads except the last one continue at once.
//
// The kernel omits that stop for a thread that ends by itself while the process is being
// killed. So as soon as all other threads are doomed, a thread that arrives is kept: until
// the next one arrives, or until the others have ended without stopping. No thread waits for
// it, since all must end.
//
// It belongs to the owner's goroutine.
type ending struct {
	o       *owner
	leaving map[int]struct{} // threads that have come to their end
	doomed  map[int]struct{} // threads that will end without executing anything
	alive   int              // a thread that was alive at the last check
	last    *thread          // kept at its end
	since   time.Time        // when a thread was first kept
	told    bool             // the handlers were called for last
	holds   int              // number of holds of the handlers
	stop    func()           // ends the repeated judging
}

// doomPatience bounds the time for which a thread is kept for doomed ones. Before Linux 5.16
// a thread that dumps core waits for those that the owner keeps.
const doomPatience = time.Second

// begin forgets the threads of the program that the process executed before.
func (e *ending) begin() {
	clear(e.leaving)
	clear(e.doomed)
	e.since, e.alive = time.Time{}, 0
}

func (e *ending) watches() []*watch { return e.o.events.kinds[node.EventProcTerminated] }

// options returns the options of a thread besides ptrace.Options. Ends are reported only
// when all threads are attached. Otherwise an attachment could wait for an execve of the
// process (see reaper), and this execve for a thread that is stopped at its end, until the
// owner, which is attaching, continues it.
func (e *ending) options(t *thread) int {
	if len(e.watches()) > 0 && e.o.tracer.whole && t.kind <= unobserved {
		return unix.PTRACE_O_TRACEEXIT
	}
	return 0
}

// watchesChanged is called when a watch was added or taken away.
func (e *ending) watchesChanged() {
	if e.o.ended {
		return
	}
	if len(e.watches()) == 0 && !e.told {
		e.letGo()
	}
	e.o.tracer.freeze(nil)
	for _, t := range e.o.tracer.threads {
		if t.stopped() {
			t.setOptions(e.options(t))
		}
	}
	e.o.tracer.thaw()
}

func (e *ending) isLeaving(t *thread) bool {
	_, is := e.leaving[t.tid]
	return is
}

// exiting handles the stop of a thread at its end. t is nil if its creation was not
// reported: SIGKILL has ended its creator's stop.
func (o *owner) exiting(tid int, t *thread) {
	if t == nil {
		if !isThread(o.proc.PID, tid) {
			_ = ptrace.Cont(tid, 0) // a child of the process
			return
		}
		delete(o.family.unborn, tid)
		t = &thread{tid: tid, pid: o.proc.PID, kind: o.node.released.roleOf(o.proc, tid)}
		o.tracer.threads[tid] = t
	}
	for in := t.injection; in != nil; in = in.outer {
		in.failed = true
	}
	t.injection, t.asked, t.stop = nil, false, exitStop
	if t.kind <= unobserved {
		o.ending.arrive(t)
	}
	if t.stop == exitStop && !t.stays(o) {
		o.tracer.resume(t)
	}
}

// errAtEnd is the error of requests that need a thread to execute something.
func errAtEnd(t *thread) error {
	return omis.Errorf(omis.UnsupportedService, "thread %d of process %d is at its end and executes nothing more", t.tid, t.pid)
}

// arrive records a thread at its end, and keeps it if it may be the last one.
func (e *ending) arrive(t *thread) {
	if e.leaving == nil {
		e.leaving, e.doomed = make(map[int]struct{}), make(map[int]struct{})
	}
	e.leaving[t.tid] = struct{}{}
	if len(e.watches()) == 0 || e.told || e.outlived() {
		return
	}
	if first := e.o.proc.PID; e.last == nil || e.last.tid != first {
		// The kernel shows the memory of a process by its first thread.
		e.letGo()
		ptrace.Reap(t.tid)
		e.last, e.stop = t, e.o.box.ringEvery(lookAround)
		if e.since.IsZero() {
			e.since = time.Now()
		}
	}
	e.judge()
}

// judge reports the end of the process if no thread but the kept one is left.
func (e *ending) judge() {
	if e.last == nil || e.told || e.o.ended {
		return
	}
	for tid := range e.doomed {
		if !e.isPresent(tid) {
			delete(e.doomed, tid)
			continue
		}
		if time.Since(e.since) > doomPatience {
			e.letGo()
		}
		return
	}
	switch {
	case e.outlived():
		e.letGo()
	case len(e.doomed) == 0:
		e.tell()
	}
}

// tell calls the handlers. The process goes on when they and their holds are done.
func (e *ending) tell() {
	e.told = true
	e.stop()
	e.stop = nil
	t, n := e.last, e.o.node
	h := &node.Hit{Proc: e.o.proc, TID: t.tid, Life: t.life, Time: n.Now(), Held: node.HeldByPtrace, Now: n.Now}
	e.holds++
	h.Hold = func() (release func()) {
		e.holds++
		return sync.OnceFunc(func() { e.o.box.post(letEnd{t}) })
	}
	for _, w := range e.watches() {
		w.handle(h)
	}
	letEnd{t}.do(e.o)
}

// letEnd ends one of the holds of a process at its exit.
type letEnd struct{ t *thread }

func (c letEnd) do(o *owner) {
	e := o.ending
	if e.last != c.t {
		return // it was killed, or let go
	}
	if e.holds--; e.holds == 0 {
		e.letGo()
	}
}

// letGo lets the kept thread end.
func (e *ending) letGo() {
	t := e.last
	if t == nil {
		return
	}
	e.forget(t)
	e.o.tracer.resume(t)
}

// forget is called when a thread is not traced any more.
func (e *ending) forget(t *thread) {
	if e.last != t {
		return
	}
	e.last, e.holds = nil, 0
	if e.stop != nil {
		e.stop()
		e.stop = nil
	}
}

// left is called when a thread has ended.
func (e *ending) left(tid int) {
	delete(e.leaving, tid)
	delete(e.doomed, tid)
	e.judge()
}

// outlived reports whether a thread lives that is neither at its end nor doomed.
func (e *ending) outlived() bool {
	if e.alive != 0 && e.lives(e.alive) {
		return true
	}
	for tid, t := range e.o.tracer.threads {
		if t.kind <= unobserved && e.lives(tid) {
			e.alive = tid
			return true
		}
	}
	if len(e.doomed) > 0 {
		return false // it is too early to list all threads
	}
	tids, _ := proc.Threads(e.o.proc.PID) // none if the process has ended
	for _, tid := range tids {
		if e.lives(tid) {
			e.alive = tid
			return true
		}
	}
	return false
}

// lives reports whether a thread lives, and takes note of it if it is doomed.
func (e *ending) lives(tid int) bool {
	if _, doomed := e.doomed[tid]; doomed || !e.isPresent(tid) {
		return false
	}
	if !proc.Doomed(e.o.proc.PID, tid) {
		return true
	}
	e.doomed[tid] = struct{}{}
	return false
}

// isPresent reports whether a thread has neither ended nor come to its end.
func (e *ending) isPresent(tid int) bool {
	if _, leaving := e.leaving[tid]; leaving {
		return false
	}
	s, err := proc.ThreadState(e.o.proc.PID, tid)
	return err == nil && s != "Z" && s != "X"
}
