//go:build linux && amd64

package linux

import (
	"mirador/omis"
	"mirador/omis/node"
)

var _ node.Suspender = (*Node)(nil)

// Suspend: see node.Suspender.
func (n *Node) Suspend(p omis.ProcID, tids []int) error {
	return n.owners.ask(p, haltThreads{tids, (*halts).suspend})
}

// Resume: see node.Suspender.
func (n *Node) Resume(p omis.ProcID, tids []int) error {
	return n.owners.ask(p, haltThreads{tids, (*halts).unsuspend})
}

func (h *halts) suspend(tids []int) error {
	if err := h.prepareStop(tids); err != nil {
		h.o.restIfIdle()
		return err
	}
	if len(tids) == 0 {
		h.pauses++
	}
	for _, tid := range tids {
		h.o.tracer.threads[tid].pauses++
	}
	return h.bringToRest((*thread).isPaused)
}

func (h *halts) unsuspend(tids []int) error {
	defer h.goOn()
	if h.o.ended {
		return ended(h.o.proc.PID)
	}
	if len(tids) == 0 {
		return h.unsuspendAll()
	}
	// A thread that is named twice must be suspended twice.
	left := make(map[int]int, len(tids))
	for _, tid := range tids {
		t := h.o.tracer.threads[tid]
		switch {
		case t == nil && h.o.tracer.whole:
			return noThread(h.o.proc, tid)
		case t == nil || h.pauses+t.pauses-left[tid] <= 0 || t.kind != member:
			return omis.Errorf(omis.ParameterError, "thread %d of process %d is not suspended", tid, h.o.proc.PID)
		}
		left[tid]++
	}
	for _, tid := range tids {
		h.o.tracer.threads[tid].pauses--
	}
	return nil
}

// unsuspendAll resumes every suspended thread once.
func (h *halts) unsuspendAll() error {
	if h.pauses > 0 {
		h.pauses--
		for _, t := range h.o.tracer.threads {
			t.pauses = max(t.pauses, -h.pauses)
		}
		return nil
	}
	resumed := false
	for _, t := range h.o.tracer.threads {
		if t.isPaused(h.o) {
			t.pauses--
			resumed = true
		}
	}
	if !resumed {
		return omis.Errorf(omis.ParameterError, "process %d is not suspended", h.o.proc.PID)
	}
	return nil
}
