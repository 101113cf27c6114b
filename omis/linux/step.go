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
	finished []*watch  // internal watches that are to be removed
}

// stepper is the state of a thread that single steps need.
//
// If the monitor dies, a thread that is being stepped gets a SIGTRAP, which the resident
// handler swallows: it is installed for steps as for breakpoints.
type stepper struct {
	used   bool // the thread was stepped, and the signal of a step may still come
	looked bool // its next instruction was examined
	pushes bool // the next instruction stores the flags
	popped bool // it has loaded the flags while it was stepped
	over   *over
}

// over is a call that EventSteppedOver counts as one instruction.
type over struct {
	back     *watch // on the return address
	returned bool
}

func isStep(kind node.EventKind) bool {
	return kind == node.EventStepped || kind == node.EventSteppedOver
}

// wants reports whether a thread is to run for only one instruction. In a call that is stepped
// over it runs freely, unless another watch counts its steps.
func (s *steps) wants(t *thread) bool {
	if !s.stepping {
		return false
	}
	return s.o.events.concerned(node.EventStepped, t) || t.stepper.over == nil && s.o.events.concerned(node.EventSteppedOver, t)
}

// prepareSteps makes the process able to survive the monitor's death during steps.
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
	// If the word cannot be written it may stay: no other thread traps.
	_ = s.o.space.write(s.o.space.home.Stepping(), word(0))
}

// step continues a thread for one instruction. Before that the instruction is examined, which
// must not be done in the middle of another event, so the thread waits for chores.
func (s *steps) step(t *thread, sig int) {
	if sig == 0 && !t.stepper.looked {
		ptrace.Reap(t.tid)
		t.holds++
		s.looks = append(s.looks, t)
		return
	}
	if sig != 0 {
		t.stepper.pushes = false // the next instruction is the first of a handler
	}
	t.stepper.looked = false
	t.stepper.used = true
	t.stop = running
	_ = ptrace.Step(t.tid, sig)
}

// lookAhead examines the instructions of threads that are to step.
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
	// If no breakpoint is possible after the call, it is stepped into.
	_ = s.stepOver(t, shown.Rip+uint64(length), shown.Rsp)
}

// midway reports whether pc is in a copy, but not at its beginning: the displaced instruction
// has not ended.
func (s *steps) midway(pc, shown uint64) bool {
	b := s.o.space.table[shown]
	return s.o.space.inArena(pc) && (b == nil || b.copy != pc)
}

const (
	pushFlags = 0x9c
	popFlags  = 0x9d
	trapFlag  = 0x100
)

// is reports whether code begins with an instruction of one byte, or with its 16-bit form.
func is(code []byte, opcode byte) bool {
	const operandSize = 0x66
	return len(code) > 1 && (code[0] == opcode || code[0] == operandSize && code[1] == opcode)
}

// clearFlag clears the trap flag of a thread that is not to step any more. The kernel clears
// it if it knows that it has set the flag; after a popf it believes that the program did.
func (t *thread) clearFlag() {
	if !t.stepper.popped {
		return
	}
	t.stepper.popped = false
	var regs ptrace.Regs
	if ptrace.GetRegs(t.tid, &regs) == nil && regs.Eflags&trapFlag != 0 {
		regs.Eflags &^= trapFlag
		_ = ptrace.SetRegs(t.tid, &regs) // it fails only if the thread was killed
	}
}

// stepOver waits until a thread returns from a call to a place, with a stack pointer not lower
// than before. Deeper calls of the same function return with a lower one.
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

// tellReturn is called after the watches of a breakpoint. One of them may have found that the
// call that the thread steps over has ended.
func (s *steps) tellReturn(t *thread, addr uint64) {
	if t.stepper.over == nil || !t.stepper.over.returned {
		return
	}
	s.endOver(t)
	s.tellStep(node.EventSteppedOver, t, addr)
}

// endOver gives up the breakpoint after a call, which takeAway removes.
func (s *steps) endOver(t *thread) {
	if v := t.stepper.over; v != nil {
		t.stepper.over = nil
		s.finished = append(s.finished, v.back)
	}
}

// takeAway removes internal watches that are done.
func (s *steps) takeAway() {
	for len(s.finished) > 0 {
		w := s.finished[0]
		s.finished = s.finished[1:]
		// If the write fails, the program has ended or the warden restores the byte.
		_ = s.o.events.unwatch(w)
	}
}

// stepped handles the SIGTRAP of a single step, and returns false if the signal is another
// one.
func (s *steps) stepped(t *thread) bool {
	if !t.stepper.used {
		return false
	}
	var info ptrace.SigInfo
	if ptrace.GetSigInfo(t.tid, &info) != nil {
		return true // it was killed; its end will be reported
	}
	const afterCall, afterStep = 1, 2 // TRAP_BRKPT, TRAP_TRACE
	// The kernel reports the stop at the first instruction of a signal handler with the code SIGTRAP.
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

// stepEnded reports an executed instruction, unless the thread is still in the copy of a
// displaced one.
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

// hideFlag clears the trap flag in the flags that a stepped thread has just stored: the
// monitor has set it, and it would raise a signal when the flags are loaded again.
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
