//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// share is how many hits of a thread are served in one round before others come
// first (see owner.endRound).
const share = 4

// hit is what handlers get to see of an occurrence.
type hit struct {
	node.Hit
	o       *owner
	t       *thread
	newborn *thread // whom t has just created: it is held with it
	taken   bool    // a handler holds on to it
}

// newHit prepares the next hit; one that nobody holds is used again.
func (e *events) newHit(t *thread) *hit {
	e.o.tracer.precedence.stepBack() // handlers may take their time
	h := e.hit
	if h == nil || h.taken {
		h = &hit{o: e.o}
		h.Hold, h.Now = h.hold, e.o.node.Now
		e.hit = h
	}
	h.Hit = node.Hit{Proc: e.o.proc, TID: t.tid, Time: e.o.node.Now(), Held: node.HeldByPtrace, Hold: h.Hold, Now: h.Now}
	h.t, h.newborn = t, nil
	return h
}

// hold is Hit.Hold. Handlers call it, on the owner's goroutine.
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

// reached deals with a SIGTRAP of a thread; false: it is no breakpoint's, but the
// program's own.
//
// The order is what a monitor's death at any point calls for: until the stop is
// taken or the thread resumed, the kernel would deliver the SIGTRAP; the
// resident handler understands it before and after the program counter was set.
func (e *events) reached(t *thread) bool {
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) != nil {
		return true // killed; its end will be told
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
	h.Addr, h.SP = addr, regs.Rsp
	if b.runtime != nil {
		h.Goroutine = e.o.patcher.goroutineOf(b.runtime, regs.Fs_base)
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

// raised tells that the processor raised the signal a thread is stopped for, not
// somebody's kill. It is worth asking where a thread can come to be one byte
// behind a breakpoint otherwise than by running into it.
func raised(t *thread) bool {
	var info ptrace.SigInfo
	return ptrace.GetSigInfo(t.tid, &info) == nil && info.Code == ptrace.FromKernel
}

// afterHit lets the thread go on, or wait for the end of the round.
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

// tell fires an event other than a reached address.
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
