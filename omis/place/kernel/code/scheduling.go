//go:build linux && amd64

package code

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/host/calls"
	"mirador/omis/node"
)

// Arguments of sched_switch. sched_wakeup has the task as its only argument.
const (
	argPreempt = iota
	argPrev
	argNext
	argState
)

// Bits of the state of a thread that leaves its processor: it waits (interruptibly or not), or has ended.
const (
	stateWaits = 1 | 2
	stateDead  = 0x80
)

// Stack offsets of scheduling programs.
const (
	stackTime  = -72 // now
	stackWas   = -80 // former state of the thread
	stackState = -80 - SizeOfState
	stackHeld  = stackState - 8 // calls.Mark if the monitor holds the thread
)

// argumentOf returns which argument of the tracepoint is the thread in a role.
func argumentOf(r Role) int16 { return [Roles]int16{argPrev, argNext, 0}[r] }

// OnRole assembles the root program for a role.
func (e *Events) OnRole(r Role, b *Bodies) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(told, asm.R1), argument(whose, argumentOf(r))}
	code = append(code, e.find(e.Layout, whose, end)...)
	code = append(code,
		asm.LoadMem(asm.R3, found, RecordRoles+2*int16(r), asm.Half),
		asm.JEq.Imm(asm.R3, 0, end))
	code = append(code, b.handOver(told)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// AtRole assembles the program of a process for a role.
func (e *Events) AtRole(r Role, list []*Listener) asm.Instructions {
	s := &scheduling{Events: e, list: list}
	code := asm.Instructions{
		asm.Mov.Reg(told, asm.R1),
		argument(whose, argumentOf(r)),
		asm.LoadMem(asm.R1, whose, e.Layout.started, asm.DWord),
		asm.StoreMem(asm.RFP, stackStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, e.Layout.pid, asm.Word),
		asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, stackZero, 0, asm.Word),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(hitAt, asm.R0),
		asm.StoreMem(asm.RFP, stackTime, asm.R0, asm.DWord),
	}
	if r == Leaving {
		code = append(code, isHeld()...)
	}
	code = append(code, s.state()...)
	switch r {
	case Leaving:
		code = append(code, s.leave()...)
	case Coming:
		code = append(code, s.come()...)
	case Woken:
		code = append(code, s.wake()...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// scheduling assembles one program.
type scheduling struct {
	*Events
	list   []*Listener
	raised int
}

// state puts the address of the thread's entry into R0, and its state into R1. A thread without an entry
// was running.
func (s *scheduling) state() asm.Instructions {
	code := append(s.row(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.LoadMem(asm.R1, asm.R0, stateStarted, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "known"),
		asm.StoreMem(asm.R0, stateStarted, asm.R2, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "known"),
		asm.Mov.Imm(asm.R1, isRunning), // the entry is of an earlier thread with the same number
		asm.StoreMem(asm.R0, StateNow, asm.R1, asm.DWord),
		asm.Ja.Label("known"),
		asm.Mov.Imm(asm.R1, isRunning).WithSymbol("new"),
		asm.StoreMem(asm.RFP, stackState+StateNow, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackState+stateSince, hitAt, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackStarted, asm.DWord),
		asm.StoreMem(asm.RFP, stackState+stateStarted, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, s.States.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackState),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call())
	code = append(code, s.row()...)
	return append(code,
		asm.JEq.Imm(asm.R0, 0, end),
		asm.LoadMem(asm.R1, asm.R0, StateNow, asm.DWord).WithSymbol("known"))
}

func (s *scheduling) row() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.States.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapLookupElem.Call(),
	}
}

// enter records the state in R1.
func enter() asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.R0, StateNow, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackTime, asm.DWord),
		asm.StoreMem(asm.R0, stateSince, asm.R1, asm.DWord),
	}
}

// leave is for a thread that leaves its processor. If the event that the thread got the processor is missing,
// leave raises it now: on virtual machines some kernels switch from an idle processor to a thread without
// a tracepoint (perf missed the same switches). The time of the missed event is computed from the time that
// the thread has run, but is not earlier than its last event.
func (s *scheduling) leave() asm.Instructions {
	code := asm.Instructions{
		asm.JEq.Imm(asm.R1, isRunning, "running"),
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, s.Layout.ran, asm.DWord),
		asm.LoadMem(asm.R2, whose, s.Layout.ranBefore, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.R0, stateSince, asm.DWord),
		asm.Mov.Reg(asm.R3, hitAt),
		asm.Sub.Reg(hitAt, asm.R1),
		asm.JGT.Reg(hitAt, asm.R3, "early"),
		asm.JGE.Reg(hitAt, asm.R2, "estimated"),
		asm.Mov.Reg(hitAt, asm.R2).WithSymbol("early"),
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord).WithSymbol("estimated"),
		asm.JNE.Imm(asm.R1, IsWaiting, "went"),
	}
	code = append(code, s.raise(node.EventUnblocked)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("went"))
	code = append(code, s.raise(node.EventScheduled)...)
	code = append(code, asm.LoadMem(hitAt, asm.RFP, stackTime, asm.DWord))
	code = append(code, s.row()...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, end),
		asm.Mov.Imm(asm.R1, isReady).WithSymbol("running"),
		argument(asm.R2, argPreempt),
		asm.And.Imm(asm.R2, 1), // a bool: the rest of the register is undefined
		asm.JNE.Imm(asm.R2, 0, "ready"),
		argument(asm.R2, argState),
		asm.And.Imm(asm.R2, stateWaits),
		asm.JEq.Imm(asm.R2, 0, "ready"),
		asm.LoadMem(asm.R2, asm.RFP, stackHeld, asm.DWord),
		asm.JEq.Imm(asm.R2, calls.Mark, "ready"),
		asm.Mov.Imm(asm.R1, IsWaiting),
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord).WithSymbol("ready"))
	code = append(code, enter()...)
	code = append(code, s.raise(node.EventDescheduled)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord),
		asm.JNE.Imm(asm.R1, IsWaiting, "gone"))
	code = append(code, s.raise(node.EventBlocked)...)
	code = append(code,
		argument(whose, argPrev),
		asm.LoadMem(asm.R1, whose, s.Layout.inIOWait, asm.Byte),
		asm.And.Imm(asm.R1, s.Layout.ioWaitBit),
		asm.JEq.Imm(asm.R1, 0, "gone"))
	code = append(code, s.raise(node.EventBlockedOnIO)...)
	return append(code,
		argument(asm.R2, argState).WithSymbol("gone"),
		asm.And.Imm(asm.R2, stateDead),
		asm.JEq.Imm(asm.R2, 0, end),
		asm.LoadMapPtr(asm.R1, s.States.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapDeleteElem.Call())
}

// isHeld stores whether the current thread is in a system call with the mark of calls that a thread makes for the
// monitor: then it waits because the monitor holds it, which is no waiting of the program.
func isHeld() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, whose),
		asm.FnTaskPtRegs.Call(),
		asm.LoadMem(asm.R1, asm.R0, regOrig, asm.DWord),
		asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(asm.RFP, stackHeld, asm.R1, asm.DWord),
	}
}

// come is for a thread that gets a processor. A signal can end its waiting without a wake-up.
func (s *scheduling) come() asm.Instructions {
	code := asm.Instructions{
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, isRunning),
	}
	code = append(code, enter()...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord),
		asm.JNE.Imm(asm.R1, IsWaiting, "came"))
	code = append(code, s.raise(node.EventUnblocked)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("came"))
	return append(code, s.raise(node.EventScheduled)...)
}

// wake is for a thread that is woken. Threads are sometimes woken that do not wait yet.
func (s *scheduling) wake() asm.Instructions {
	code := asm.Instructions{
		asm.JNE.Imm(asm.R1, IsWaiting, end),
		asm.Mov.Imm(asm.R1, isReady),
	}
	code = append(code, enter()...)
	return append(code, s.raise(node.EventUnblocked)...)
}

// raise runs all listeners of an event, whose time is in hitAt.
func (s *scheduling) raise(kind node.EventKind) asm.Instructions {
	var code asm.Instructions
	for _, l := range s.list {
		if l.Kind == kind {
			s.raised++
			code = append(code, s.part(l, fmt.Sprint("raised", s.raised))...)
		}
	}
	return code
}
