//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/node"
)

var _ node.Suspender = (*Node)(nil)

// Suspend: see node.Suspender. An empty list of threads means all of them, those
// to come included.
func (n *Node) Suspend(p omis.ProcID, tids []int) error {
	c := suspendThreads{newAnswer(), tids}
	return n.ask(p, c, c.answer)
}

// Resume: see node.Suspender.
func (n *Node) Resume(p omis.ProcID, tids []int) error {
	c := resumeThreads{newAnswer(), tids}
	return n.ask(p, c, c.answer)
}

type suspendThreads struct {
	*answer
	tids []int
}

func (c suspendThreads) do(o *owner) { c.give(o.suspend(c.tids)) }

func (o *owner) suspend(tids []int) error {
	if err := o.prepareStop(tids); err != nil {
		o.restIfIdle()
		return err
	}
	if len(tids) == 0 {
		o.pauses++
	}
	for _, tid := range tids {
		o.threads[tid].pauses++
	}
	return o.bringToRest((*thread).isPaused)
}

type resumeThreads struct {
	*answer
	tids []int
}

func (c resumeThreads) do(o *owner) {
	err := o.unsuspend(c.tids)
	o.goOn()
	c.give(err)
}

func (o *owner) unsuspend(tids []int) error {
	if o.ended {
		return ended(o.proc.PID)
	}
	if len(tids) == 0 {
		return o.unsuspendAll()
	}
	// A thread may be named twice, and must then be suspended twice.
	left := make(map[int]int, len(tids))
	for _, tid := range tids {
		t := o.threads[tid]
		switch {
		case t == nil && o.whole:
			return noThread(o.proc, tid)
		case t == nil || o.pauses+t.pauses-left[tid] <= 0 || t.kind != member:
			return omis.Errorf(omis.ParameterError, "thread %d of process %d is not suspended", tid, o.proc.PID)
		}
		left[tid]++
	}
	for _, tid := range tids {
		o.threads[tid].pauses--
	}
	return nil
}

// unsuspendAll resumes every suspended thread once.
func (o *owner) unsuspendAll() error {
	if o.pauses > 0 {
		o.pauses--
		for _, t := range o.threads {
			t.pauses = max(t.pauses, -o.pauses)
		}
		return nil
	}
	resumed := false
	for _, t := range o.threads {
		if t.isPaused(o) {
			t.pauses--
			resumed = true
		}
	}
	if !resumed {
		return omis.Errorf(omis.ParameterError, "process %d is not suspended", o.proc.PID)
	}
	return nil
}
