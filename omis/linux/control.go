//go:build linux && amd64

package linux

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

var _ node.ThreadControl = (*Node)(nil)

// SignalThread: see node.ThreadControl.
func (n *Node) SignalThread(p omis.ProcID, tid, sig int) error {
	if err := checkThread(p, tid); err != nil {
		return err
	}
	err := unix.Tgkill(p.PID, tid, unix.Signal(sig))
	return signalError(err, sig, fmt.Sprintf("thread %d of process %d", tid, p.PID), noThread(p, tid))
}

// signalError returns the error of a signal to a process or thread; ended is the error if it has
// ended.
func signalError(err error, sig int, to string, ended error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		return ended
	case errors.Is(err, unix.EPERM):
		return omis.Errorf(omis.NoPermission, "cannot send a signal to %s: it belongs to another user; the monitor would need CAP_KILL", to)
	}
	return omis.Errorf(omis.ParameterError, "cannot send signal %d to %s: %w", sig, to, err)
}

// SetThreadPriority: see node.ThreadControl. Linux has a nice value for each thread.
func (n *Node) SetThreadPriority(p omis.ProcID, tid, nice int) error {
	const lowest, highest = 19, -20
	if nice > lowest || nice < highest {
		return omis.Errorf(omis.ParameterError, "the priority %d is not between %d, the highest, and %d, the lowest", nice, highest, lowest)
	}
	if err := checkThread(p, tid); err != nil {
		return err
	}
	switch err := unix.Setpriority(unix.PRIO_PROCESS, tid, nice); {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		return noThread(p, tid)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return omis.Errorf(omis.NoPermission, "cannot set the priority of thread %d of process %d to %d: %w; the monitor would need CAP_SYS_NICE", tid, p.PID, nice, err)
	default:
		return omis.Errorf(omis.OSError, "cannot set the priority of thread %d of process %d to %d: %w", tid, p.PID, nice, err)
	}
}

// SetPriority: see node.ThreadControl. It sets the nice value of all threads. After an error,
// it restores those that it has changed.
func (n *Node) SetPriority(p omis.ProcID, nice int) error {
	tids, err := n.Threads(p)
	if err != nil {
		return err
	}
	for i, tid := range tids {
		former := niceOf(tid)
		err := n.SetThreadPriority(p, tid, nice)
		if err != nil && !isEnded(err) {
			for _, changed := range tids[:i] {
				_ = n.SetThreadPriority(p, changed, former)
			}
			return err
		}
	}
	return nil
}

// niceOf returns the nice value of a thread. The system call returns no negative values.
func niceOf(tid int) int {
	const zero = 20
	v, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return 0
	}
	return zero - v
}

// threadID names a thread of a process for its whole life.
type threadID struct {
	tid   int
	start uint64
}

// LetGo: see node.ThreadControl. The thread continues whatever keeps it, its events are not
// reported, and it passes breakpoints of other watches.
func (n *Node) LetGo(p omis.ProcID, tid int) error {
	if err := checkThread(p, tid); err != nil {
		return err
	}
	start, err := proc.ThreadStart(p.PID, tid)
	if err != nil {
		return noThread(p, tid)
	}
	n.released.add(p, threadID{tid, start})
	if n.owners.of(p) == nil {
		return nil
	}
	return n.owners.ask(p, letGoThread{tid})
}

// released are the threads that LetGo was called for. Its methods may be called from any
// goroutine.
type released struct {
	mu     sync.Mutex
	byProc map[omis.ProcID]map[threadID]struct{}
}

func (r *released) add(p omis.ProcID, t threadID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byProc[p] == nil {
		r.byProc[p] = make(map[threadID]struct{})
	}
	r.byProc[p][t] = struct{}{}
}

// roleOf returns the role of a thread that is being attached.
func (r *released) roleOf(p omis.ProcID, tid int) role {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byProc[p]) == 0 {
		return member
	}
	start, err := proc.ThreadStart(p.PID, tid)
	if _, gone := r.byProc[p][threadID{tid, start}]; err == nil && gone {
		return unobserved
	}
	return member
}

func (r *released) forget(p omis.ProcID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byProc, p)
}

type letGoThread struct{ tid int }

func (c letGoThread) do(o *owner) error {
	if t := o.tracer.threads[c.tid]; t != nil && t.kind == member {
		t.kind = unobserved
		t.halted, t.pauses = false, 0
		o.meeting.changes.Add(1)
	}
	o.halts.goOn()
	return nil
}

// checkThread returns an error unless the process lives and has the thread.
func checkThread(p omis.ProcID, tid int) error {
	if err := proc.Alive(p); err != nil {
		return err
	}
	if !isThread(p.PID, tid) {
		return noThread(p, tid)
	}
	return nil
}

func noThread(p omis.ProcID, tid int) error {
	return omis.Errorf(omis.UnknownObject, "process %d has no thread %d", p.PID, tid)
}
