//go:build linux && amd64

package linux

import (
	"mirador/omis/node"
)

// halts records which threads stay stopped by Stop and Suspend: all threads here, and
// single ones by the members halted and pauses of type thread.
type halts struct {
	o      *owner
	halted bool // all threads, by Stop, or because the process has not been continued yet
	pauses int  // of all threads, by Suspend
}

// haltThreads is Stop, Continue, Suspend or Resume of some threads, or of all if tids is empty.
type haltThreads struct {
	tids   []int
	change func(h *halts, tids []int) error
}

func (c haltThreads) do(o *owner) error { return c.change(&o.halts, c.tids) }

// halt is Node.Stop.
func (h *halts) halt(tids []int) error {
	if err := h.prepareStop(tids); err != nil {
		h.o.restIfIdle()
		return err
	}
	before := h.allHalted()
	h.markHalted(tids, true)
	if err := h.bringToRest((*thread).isHalted); err != nil {
		return err
	}
	for _, t := range h.o.tracer.threads {
		if t.isHalted(h.o) && !before[t] {
			h.o.events.tell(node.EventThreadStopped, t, 0)
		}
	}
	return nil
}

// prepareStop attaches to the process and checks that the threads are its.
func (h *halts) prepareStop(tids []int) error {
	if err := h.o.attach(); err != nil {
		return err
	}
	return h.known(tids)
}

// known returns an error for threads that the process does not have.
func (h *halts) known(tids []int) error {
	for _, tid := range tids {
		if t := h.o.tracer.threads[tid]; t == nil || t.kind != member {
			return noThread(h.o.proc, tid)
		}
	}
	return nil
}

// bringToRest stops the selected threads and waits for them.
func (h *halts) bringToRest(toRest func(*thread, *owner) bool) error {
	among := func(t *thread) bool { return toRest(t, h.o) }
	h.o.tracer.interruptAll(among)
	if !h.o.tracer.awaitStop(among) && h.o.ended {
		return ended(h.o.proc.PID)
	}
	h.o.tracer.absorb(among)
	h.o.meeting.comeOut(among)
	return nil
}

// unhalt is Node.Continue.
func (h *halts) unhalt(tids []int) error {
	defer h.goOn()
	if h.o.ended {
		return ended(h.o.proc.PID)
	}
	if h.o.tracer.whole {
		if err := h.known(tids); err != nil {
			return err
		}
	}
	before := h.allHalted()
	h.markHalted(tids, false)
	for t := range before {
		if !t.isHalted(h.o) {
			h.o.events.tell(node.EventThreadContinued, t, 0)
		}
	}
	return nil
}

// goOn is called when fewer reasons keep threads than before. If nothing needs tracing any
// more, the process is released without another stop.
func (h *halts) goOn() {
	if h.o.needsTracing() {
		h.o.tracer.resumeAll()
		return
	}
	h.o.leave()
}

func (h *halts) allHalted() map[*thread]bool {
	halted := make(map[*thread]bool)
	for _, t := range h.o.tracer.threads {
		if t.isHalted(h.o) {
			halted[t] = true
		}
	}
	return halted
}

// markHalted records which threads are to stay stopped. If the whole process is stopped and
// some threads continue, the others are stopped one by one.
func (h *halts) markHalted(tids []int, halted bool) {
	if len(tids) == 0 {
		h.halted = halted
		for _, t := range h.o.tracer.threads {
			t.halted = false
		}
		return
	}
	if h.halted && !halted {
		h.halted = false
		for _, t := range h.o.tracer.threads {
			t.halted = t.kind == member
		}
	}
	for _, tid := range tids {
		if t := h.o.tracer.threads[tid]; t != nil {
			t.halted = halted
		}
	}
}
