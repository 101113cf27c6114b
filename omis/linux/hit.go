//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// share is the number of hits of a thread that the owner serves in one round before it serves
// the others (see tracer.endRound).
const share = 4

// hit is the hit that handlers get, with what the owner needs.
type hit struct {
	node.Hit
	o       *owner
	t       *thread
	newborn *thread // a thread that t has just created and that is held with t
	taken   bool    // a handler has called Hold
}

// newHit returns the next hit. A hit that no handler has held is reused.
func (e *events) newHit(t *thread) *hit {
	e.o.tracer.precedence.StepBack() // handlers may take long
	h := e.hit
	if h == nil || h.taken {
		h = &hit{o: e.o}
		h.Hold, h.Now = h.hold, e.o.node.Now
		e.hit = h
	}
	h.Hit = node.Hit{Proc: e.o.proc, TID: t.tid, Life: t.life, Time: e.o.node.Now(), Held: node.HeldByPtrace, Hold: h.Hold, Now: h.Now}
	h.t, h.newborn = t, nil
	return h
}

// hold is Hit.Hold. Handlers call it on the owner's goroutine.
func (h *hit) hold() (release func()) {
	h.taken = true
	h.t.holds++
	if h.newborn != nil {
		h.newborn.holds++
	}
	var once sync.Once
	return func() { once.Do(h.release) }
}

func (h *hit) release() {
	if h.newborn != nil {
		h.o.box.post(releaseThread{h.newborn})
	}
	h.o.box.post(releaseThread{h.t})
}

// releaseThread ends a hold.
type releaseThread struct{ t *thread }

func (c releaseThread) do(o *owner) {
	c.t.holds--
	if o.tracer.threads[c.t.tid] == c.t && c.t.stopped() && !c.t.deferred && !c.t.stays(o) {
		o.tracer.resume(c.t)
	}
}

// reached handles a SIGTRAP of a thread; it returns false if the signal is the program's own.
//
// The order of its steps is safe against the monitor's death at any point: until the stop is
// reaped or the thread resumed, the kernel would deliver the SIGTRAP, and the resident handler
// handles it before and after the program counter was set.
func (e *events) reached(t *thread) bool {
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) != nil {
		return true // it was killed; its end will be reported
	}
	addr := regs.Rip - 1
	b := e.o.space.table[addr]
	if b == nil {
		return false
	}
	if (b.length == 1 || t.stepper.used) && !raised(t) {
		return false
	}
	h := e.newHit(t)
	h.Addr, h.SP, h.Flags = addr, regs.Rsp, regs.Eflags
	if b.runtime != nil {
		h.Goroutine = e.o.patcher.goroutineOf(b.runtime, &regs)
	}
	h.Args = node.Args{regs.Rdi, regs.Rsi, regs.Rdx, regs.Rcx, regs.R8, regs.R9}
	_ = ptrace.SetPC(t.tid, b.copy)
	t.stop = hitStop
	if t.kind == member {
		for _, w := range b.watches {
			w.handle(&h.Hit)
		}
	}
	e.o.tracer.busy = true
	e.o.masks.verify(t)
	e.o.steps.tellReturn(t, addr)
	e.afterHit(t)
	return true
}

// raised reports whether the processor raised the signal that a thread is stopped for, rather
// than a kill. It matters where a thread can be one byte behind a breakpoint without having
// run into it.
func raised(t *thread) bool {
	var info ptrace.SigInfo
	return ptrace.GetSigInfo(t.tid, &info) == nil && info.Code == ptrace.FromKernel
}

// afterHit continues the thread, or defers that to the end of the round.
func (e *events) afterHit(t *thread) {
	if t.round != e.o.tracer.round {
		t.round, t.served = e.o.tracer.round, 0
	}
	t.served++
	if t.served < share || t.stays(e.o) {
		e.o.tracer.settle(t)
		return
	}
	ptrace.Reap(t.tid)
	t.deferred = true
	e.o.tracer.deferred = append(e.o.tracer.deferred, t)
}

// tell calls the handlers of an event other than a reached address.
func (e *events) tell(kind node.EventKind, t *thread, child int) {
	e.tellOf(kind, t, func(h *hit) { h.Child = child })
}

func (e *events) tellOf(kind node.EventKind, t *thread, describe func(*hit)) {
	if t.kind != member {
		return
	}
	watches := e.kinds[kind]
	if len(watches) == 0 {
		return
	}
	h := e.newHit(t)
	describe(h)
	if kind == node.EventThreadTerminated {
		h.Held = ""
	}
	for _, w := range watches {
		w.handle(&h.Hit)
	}
}
