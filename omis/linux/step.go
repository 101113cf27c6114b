//go:build linux && amd64

package linux

import (
	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/linux/ptrace"
	"mirador/omis/node"
)

// steps owns the single steps of all threads.
type steps struct {
	o        *owner
	stepping bool      // the process is prepared for steps
	looks    []*thread // threads whose next instruction is to be examined before their next step
	finished []*watch  // watches of the monitor's own that are to be taken away
}

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
func (s *steps) wants(t *thread) bool {
	if !s.stepping {
		return false
	}
	return s.o.events.concerned(node.EventStepped, t) || t.stepper.over == nil && s.o.events.concerned(node.EventSteppedOver, t)
}

// prepareSteps makes the process able to survive steps without us.
func (s *steps) prepareSteps() error {
	if s.stepping {
		return nil
	}
	if err := s.o.space.settleIn(); err != nil {
		return err
	}
	maps, err := proc.Maps(s.o.proc.PID)
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
	if err := s.o.space.arm(maps, code); err != nil {
		return err
	}
	if err := s.o.space.write(s.o.space.home.Stepping(), word(1)); err != nil {
		return err
	}
	s.stepping = true
	return nil
}

// endSteps is called when no thread steps any more.
func (s *steps) endSteps() {
	for _, t := range s.o.tracer.threads {
		s.endOver(t)
	}
	s.takeAway()
	s.stepping = false
	// The word may stay when it cannot be written: nobody else traps.
	_ = s.o.space.write(s.o.space.home.Stepping(), word(0))
}

// step lets a thread run for one instruction, after a look at it, which is not
// for the middle of another event: the thread waits for chores.
func (s *steps) step(t *thread, sig int) {
	if sig == 0 && !t.stepper.looked {
		ptrace.Reap(t.tid)
		t.holds++
		s.looks = append(s.looks, t)
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
func (s *steps) lookAhead() {
	for len(s.looks) > 0 {
		t := s.looks[0]
		s.looks = s.looks[1:]
		t.holds--
		if s.o.tracer.threads[t.tid] != t || !t.stopped() {
			continue
		}
		s.look(t)
		if !t.stays(s.o) && !t.deferred {
			s.o.tracer.resume(t)
		}
	}
}

// look prepares a thread's next step.
func (s *steps) look(t *thread) {
	t.stepper.looked, t.stepper.pushes = true, false
	regs, shown, err := s.o.readRegs(t)
	if err != nil || s.o.space.memory == nil || s.midway(regs.Rip, shown.Rip) {
		return
	}
	code := make([]byte, relocate.MaxLen)
	n, _ := s.o.space.memory.ReadAt(code, int64(shown.Rip))
	code = s.o.space.unpatched(shown.Rip, code[:n])
	t.stepper.pushes = is(code, pushFlags)
	t.stepper.popped = t.stepper.popped || is(code, popFlags)
	length := relocate.CallLength(code)
	if length == 0 || t.stepper.over != nil || !s.o.events.concerned(node.EventSteppedOver, t) {
		return
	}
	// Where no breakpoint can stand behind the call, it is stepped into.
	_ = s.stepOver(t, shown.Rip+uint64(length), shown.Rsp)
}

// midway tells that pc is in a copy, but not at its beginning: the displaced
// instruction shown has not ended.
func (s *steps) midway(pc, shown uint64) bool {
	b := s.o.space.table[shown]
	return s.o.space.inArena(pc) && (b == nil || b.copy != pc)
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
func (s *steps) stepOver(t *thread, back, sp uint64) error {
	v := new(over)
	v.back = &watch{
		Watch: node.Watch{Event: node.EventReachedAddr, Proc: s.o.proc, Addr: back},
		inner: true,
		handle: func(h *node.Hit) {
			if h.TID == t.tid && h.SP >= sp {
				v.returned = true
			}
		},
	}
	if err := s.o.events.watchAddr(v.back); err != nil {
		return err
	}
	t.stepper.over = v
	return nil
}

// tellReturn is called after a breakpoint's watches were, one of which may have
// been the end of a call that was stepped over.
func (s *steps) tellReturn(t *thread, addr uint64) {
	if t.stepper.over == nil || !t.stepper.over.returned {
		return
	}
	s.endOver(t)
	s.tellStep(node.EventSteppedOver, t, addr)
}

// endOver has the breakpoint behind a call taken away.
func (s *steps) endOver(t *thread) {
	if v := t.stepper.over; v != nil {
		t.stepper.over = nil
		s.finished = append(s.finished, v.back)
	}
}

// takeAway ends watches of our own that have done their work.
func (s *steps) takeAway() {
	for len(s.finished) > 0 {
		w := s.finished[0]
		s.finished = s.finished[1:]
		// What cannot be written any more has ended, or the warden restores it.
		_ = s.o.events.unwatch(w)
	}
}

// stepped deals with the SIGTRAP of a single step; false: it is none.
func (s *steps) stepped(t *thread) bool {
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
		s.hideFlag(t)
	}
	s.stepEnded(t)
	s.o.tracer.settle(t)
	return true
}

// stepEnded tells that a thread has executed an instruction, unless it is still
// on its way through the copy of a displaced one.
func (s *steps) stepEnded(t *thread) {
	if !s.stepping || t.kind != member {
		return
	}
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) != nil || s.o.space.inArena(regs.Rip) {
		return
	}
	s.tellStep(node.EventStepped, t, regs.Rip)
	if t.stepper.over == nil {
		s.tellStep(node.EventSteppedOver, t, regs.Rip)
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
func (s *steps) hideFlag(t *thread) {
	var regs ptrace.Regs
	var b [1]byte
	if ptrace.GetRegs(t.tid, &regs) != nil || s.o.space.memory == nil {
		return
	}
	if _, err := s.o.space.memory.ReadAt(b[:], int64(regs.Rsp+1)); err == nil {
		_ = s.o.space.write(regs.Rsp+1, []byte{b[0] &^ (trapFlag >> 8)})
	}
}

func (s *steps) tellStep(kind node.EventKind, t *thread, addr uint64) {
	var h *hit
	for _, w := range s.o.events.kinds[kind] {
		if !w.concerns(t) {
			continue
		}
		if h == nil {
			h = s.o.events.newHit(t)
			h.Addr = addr
		}
		w.handle(&h.Hit)
	}
}
