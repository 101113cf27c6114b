//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// stepper is what single steps ask to be kept of a thread.
//
// A thread that is stepped when the monitor dies gets a SIGTRAP of its own, which
// is for the resident handler to swallow: it is installed for steps as it is for
// breakpoints.
type stepper struct {
	used   bool // the thread was stepped: a step's signal may be to come
	looked bool // what its next instruction calls for was done
	pushes bool // the next instruction stores the flags
	popped bool // it has loaded the flags while it was stepped
	over   *over
}

// over is a call that EventSteppedOver takes for one instruction.
type over struct {
	back     *watch // on the return address
	returned bool
}

func isStep(kind node.EventKind) bool {
	return kind == node.EventStepped || kind == node.EventSteppedOver
}

// steps tells whether a thread is to run for one instruction only. In a call
// that is to be stepped over it runs freely, unless somebody else counts steps.
func (o *owner) steps(t *thread) bool {
	if !o.stepping {
		return false
	}
	return o.concerned(node.EventStepped, t) || t.stepper.over == nil && o.concerned(node.EventSteppedOver, t)
}

// prepareSteps makes the process able to survive steps without us.
func (o *owner) prepareSteps() error {
	if o.stepping {
		return nil
	}
	if err := o.space.settleIn(); err != nil {
		return err
	}
	maps, err := proc.Maps(o.proc.PID)
	if err != nil {
		return err
	}
	var code uint64
	for _, m := range maps {
		if m.Exec && m.Private && m.Inode != 0 {
			code = m.Start
			break
		}
	}
	if err := o.space.arm(maps, code); err != nil {
		return err
	}
	if err := o.space.write(o.space.home.Stepping(), word(1)); err != nil {
		return err
	}
	o.stepping = true
	return nil
}

// endSteps is called when no thread steps any more.
func (o *owner) endSteps() {
	for _, t := range o.threads {
		o.endOver(t)
	}
	o.takeAway()
	o.stepping = false
	// The word may stay when it cannot be written: nobody else traps.
	_ = o.space.write(o.space.home.Stepping(), word(0))
}

// step lets a thread run for one instruction, after a look at it, which is not
// for the middle of another event: the thread waits for chores.
func (o *owner) step(t *thread, sig int) {
	if sig == 0 && !t.stepper.looked {
		ptrace.Reap(t.tid)
		t.holds++
		o.looks = append(o.looks, t)
		return
	}
	if sig != 0 {
		t.stepper.pushes = false // a handler's first instruction is next
	}
	t.stepper.looked = false
	t.stepper.used = true
	t.stop = running
	_ = ptrace.Step(t.tid, sig)
}

// lookAhead looks at the instructions of threads that are to step.
func (o *owner) lookAhead() {
	for len(o.looks) > 0 {
		t := o.looks[0]
		o.looks = o.looks[1:]
		t.holds--
		if o.threads[t.tid] != t || !t.stopped() {
			continue
		}
		o.look(t)
		if !t.stays(o) && !t.deferred {
			o.resume(t)
		}
	}
}

// look prepares a thread's next step.
func (o *owner) look(t *thread) {
	t.stepper.looked, t.stepper.pushes = true, false
	regs, shown, err := o.readRegs(t)
	if err != nil || o.space.memory == nil || o.midway(regs.Rip, shown.Rip) {
		return
	}
	code := make([]byte, relocate.MaxLen)
	n, _ := o.space.memory.ReadAt(code, int64(shown.Rip))
	code = o.space.unpatched(shown.Rip, code[:n])
	t.stepper.pushes = is(code, pushFlags)
	t.stepper.popped = t.stepper.popped || is(code, popFlags)
	length := relocate.CallLength(code)
	if length == 0 || t.stepper.over != nil || !o.concerned(node.EventSteppedOver, t) {
		return
	}
	// Where no breakpoint can stand behind the call, it is stepped into.
	_ = o.stepOver(t, shown.Rip+uint64(length), shown.Rsp)
}

// midway tells that pc is in a copy, but not at its beginning: the displaced
// instruction shown has not ended.
func (o *owner) midway(pc, shown uint64) bool {
	b := o.space.table[shown]
	return o.space.inArena(pc) && (b == nil || b.copy != pc)
}

const (
	pushFlags = 0x9c
	popFlags  = 0x9d
	trapFlag  = 0x100
)

// is tells whether code begins with an instruction of one byte, or with the
// form of it for 16 bits.
func is(code []byte, opcode byte) bool {
	const operandSize = 0x66
	return len(code) > 1 && (code[0] == opcode || code[0] == operandSize && code[1] == opcode)
}

// clearFlag takes the trap flag away from a thread that is not to step any more.
// The kernel does so where it knows that it set the flag; after a popf it takes
// it for the program's.
func (t *thread) clearFlag() {
	if !t.stepper.popped {
		return
	}
	t.stepper.popped = false
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) == nil && regs.Eflags&trapFlag != 0 {
		regs.Eflags &^= trapFlag
		_ = ptrace.SetRegs(t.tid, &regs) // it was killed otherwise
	}
}

// stepOver waits for a thread to come back from a call: to a place, with the
// stack pointer no lower than before. Deeper calls of the same function come
// back lower.
func (o *owner) stepOver(t *thread, back, sp uint64) error {
	v := new(over)
	v.back = &watch{
		Watch: node.Watch{Event: node.EventReachedAddr, Proc: o.proc, Addr: back},
		inner: true,
		handle: func(h *node.Hit) {
			if h.TID == t.tid && h.SP >= sp {
				v.returned = true
			}
		},
	}
	if err := o.watchAddr(v.back); err != nil {
		return err
	}
	t.stepper.over = v
	return nil
}

// tellReturn is called after a breakpoint's watches were, one of which may have
// been the end of a call that was stepped over.
func (o *owner) tellReturn(t *thread, addr uint64) {
	if t.stepper.over == nil || !t.stepper.over.returned {
		return
	}
	o.endOver(t)
	o.tellStep(node.EventSteppedOver, t, addr)
}

// endOver has the breakpoint behind a call taken away.
func (o *owner) endOver(t *thread) {
	if v := t.stepper.over; v != nil {
		t.stepper.over = nil
		o.finished = append(o.finished, v.back)
	}
}

// takeAway ends watches of our own that have done their work.
func (o *owner) takeAway() {
	for len(o.finished) > 0 {
		w := o.finished[0]
		o.finished = o.finished[1:]
		// What cannot be written any more has ended, or the warden restores it.
		_ = o.unwatch(w)
	}
}

// stepped deals with the SIGTRAP of a single step; false: it is none.
func (o *owner) stepped(t *thread) bool {
	if !t.stepper.used {
		return false
	}
	var info ptrace.SigInfo
	if ptrace.GetSigInfo(t.tid, &info) != nil {
		return true // killed; its end will be told
	}
	const afterCall, afterStep = 1, 2 // TRAP_BRKPT, TRAP_TRACE
	// The third is the stop at the first instruction of a signal handler.
	if info.Code != afterCall && info.Code != afterStep && info.Code != int32(unix.SIGTRAP) {
		return false
	}
	t.stop = hitStop
	if t.stepper.pushes {
		t.stepper.pushes = false
		o.hideFlag(t)
	}
	o.stepEnded(t)
	o.settle(t)
	return true
}

// stepEnded tells that a thread has executed an instruction, unless it is still
// on its way through the copy of a displaced one.
func (o *owner) stepEnded(t *thread) {
	if !o.stepping || t.kind != member {
		return
	}
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) != nil || o.space.inArena(regs.Rip) {
		return
	}
	o.tellStep(node.EventStepped, t, regs.Rip)
	if t.stepper.over == nil {
		o.tellStep(node.EventSteppedOver, t, regs.Rip)
	}
}

func (s *space) inArena(pc uint64) bool {
	for _, a := range s.arenas {
		if pc >= a.addr && pc < a.last {
			return true
		}
	}
	return s.o.meeting.site != nil && s.o.meeting.site.Contains(pc)
}

// hideFlag clears the trap flag in the flags that a stepped thread has just
// stored: it is ours, and would raise a signal when they are loaded again.
func (o *owner) hideFlag(t *thread) {
	var regs ptrace.Regs
	var b [1]byte
	if ptrace.GetRegs(t.tid, &regs) != nil || o.space.memory == nil {
		return
	}
	if _, err := o.space.memory.ReadAt(b[:], int64(regs.Rsp+1)); err == nil {
		_ = o.space.write(regs.Rsp+1, []byte{b[0] &^ (trapFlag >> 8)})
	}
}

func (o *owner) tellStep(kind node.EventKind, t *thread, addr uint64) {
	var h *hit
	for _, w := range o.kinds[kind] {
		if !w.concerns(t) {
			continue
		}
		if h == nil {
			h = o.newHit(t)
			h.Addr = addr
		}
		w.handle(&h.Hit)
	}
}
