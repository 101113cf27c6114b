//go:build linux && amd64

package kernel

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/node"
)

// Arguments of sched_switch; that of sched_wakeup is the task alone.
const (
	argPreempt = iota
	argPrev
	argNext
	argState
)

// Bits of the state in which a thread leaves a processor: it waits (interruptibly or
// not), or has ended.
const (
	stateWaits = 1 | 2
	stateDead  = 0x80
)

// Places of the stack of a scheduling program.
const (
	stackTime  = -72 // now
	stackWas   = -80 // what the thread was doing
	stackState = -80 - sizeOfState
)

// argumentOf is where the tracepoint tells of the thread in a role.
func argumentOf(r role) int16 { return [roles]int16{argPrev, argNext, 0}[r] }

// rootOf finds out whose thread it is.
func (e *events) rootOf(r role) func(*hook) asm.Instructions {
	return func(h *hook) asm.Instructions {
		code := asm.Instructions{asm.Mov.Reg(told, asm.R1), argument(whose, argumentOf(r))}
		code = append(code, e.records.find(e.layout, whose, end)...)
		code = append(code,
			asm.LoadMem(asm.R3, found, recordRoles+2*int16(r), asm.Half),
			asm.JEq.Imm(asm.R3, 0, end))
		code = append(code, h.handOver(told)...)
		return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
	}
}

// scheduled assembles the program of a process for a role.
func (e *events) scheduled(r role, list []*listener) asm.Instructions {
	s := &scheduling{events: e, list: list}
	code := asm.Instructions{
		asm.Mov.Reg(told, asm.R1),
		argument(whose, argumentOf(r)),
		asm.LoadMem(asm.R1, whose, e.layout.started, asm.DWord),
		asm.StoreMem(asm.RFP, stackStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, e.layout.pid, asm.Word),
		asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, stackZero, 0, asm.Word),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(hitAt, asm.R0),
		asm.StoreMem(asm.RFP, stackTime, asm.R0, asm.DWord),
	}
	code = append(code, s.state()...)
	switch r {
	case leaving:
		code = append(code, s.leave()...)
	case coming:
		code = append(code, s.come()...)
	case woken:
		code = append(code, s.wake()...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// scheduling assembles one program.
type scheduling struct {
	*events
	list   []*listener
	raised int
}

// state finds the row of the thread: R0 is its address, R1 what it was doing. A thread of
// which nothing is known was running.
func (s *scheduling) state() asm.Instructions {
	code := append(s.row(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.LoadMem(asm.R1, asm.R0, stateStarted, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "known"),
		asm.StoreMem(asm.R0, stateStarted, asm.R2, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "known"),
		asm.Mov.Imm(asm.R1, isRunning), // of a thread that had this number before
		asm.StoreMem(asm.R0, stateNow, asm.R1, asm.DWord),
		asm.Ja.Label("known"),
		asm.Mov.Imm(asm.R1, isRunning).WithSymbol("new"),
		asm.StoreMem(asm.RFP, stackState+stateNow, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackState+stateSince, hitAt, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackStarted, asm.DWord),
		asm.StoreMem(asm.RFP, stackState+stateStarted, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, s.states.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackState),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call())
	code = append(code, s.row()...)
	return append(code,
		asm.JEq.Imm(asm.R0, 0, end),
		asm.LoadMem(asm.R1, asm.R0, stateNow, asm.DWord).WithSymbol("known"))
}

func (s *scheduling) row() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.states.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapLookupElem.Call(),
	}
}

// enter notes what the thread does from now on. The number is in R1.
func enter() asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.R0, stateNow, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackTime, asm.DWord),
		asm.StoreMem(asm.R0, stateSince, asm.R1, asm.DWord),
	}
}

// leave: the thread leaves its processor. If nobody saw it come, that is told now: there
// are kernels (seen in a virtual machine, where perf missed the same) whose idle
// processors switch to threads without a tracepoint. When that was, the time tells that
// it has run since, at most back to its last event.
func (s *scheduling) leave() asm.Instructions {
	code := asm.Instructions{
		asm.JEq.Imm(asm.R1, isRunning, "running"),
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, s.layout.ran, asm.DWord),
		asm.LoadMem(asm.R2, whose, s.layout.ranBefore, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.R0, stateSince, asm.DWord),
		asm.Mov.Reg(asm.R3, hitAt),
		asm.Sub.Reg(hitAt, asm.R1),
		asm.JGT.Reg(hitAt, asm.R3, "early"),
		asm.JGE.Reg(hitAt, asm.R2, "estimated"),
		asm.Mov.Reg(hitAt, asm.R2).WithSymbol("early"),
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord).WithSymbol("estimated"),
		asm.JNE.Imm(asm.R1, isWaiting, "went"),
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
		asm.And.Imm(asm.R2, 1), // a bool, the rest of the register may be anything
		asm.JNE.Imm(asm.R2, 0, "ready"),
		argument(asm.R2, argState),
		asm.And.Imm(asm.R2, stateWaits),
		asm.JEq.Imm(asm.R2, 0, "ready"),
		asm.Mov.Imm(asm.R1, isWaiting),
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord).WithSymbol("ready"))
	code = append(code, enter()...)
	code = append(code, s.raise(node.EventDescheduled)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord),
		asm.JNE.Imm(asm.R1, isWaiting, "gone"))
	code = append(code, s.raise(node.EventBlocked)...)
	code = append(code,
		argument(whose, argPrev),
		asm.LoadMem(asm.R1, whose, s.layout.inIOWait, asm.Byte),
		asm.And.Imm(asm.R1, s.layout.ioWaitBit),
		asm.JEq.Imm(asm.R1, 0, "gone"))
	code = append(code, s.raise(node.EventBlockedOnIO)...)
	return append(code,
		argument(asm.R2, argState).WithSymbol("gone"),
		asm.And.Imm(asm.R2, stateDead),
		asm.JEq.Imm(asm.R2, 0, end),
		asm.LoadMapPtr(asm.R1, s.states.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapDeleteElem.Call())
}

// come: the thread gets a processor. A signal may have set it going without a wake-up.
func (s *scheduling) come() asm.Instructions {
	code := asm.Instructions{
		asm.StoreMem(asm.RFP, stackWas, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, isRunning),
	}
	code = append(code, enter()...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackWas, asm.DWord),
		asm.JNE.Imm(asm.R1, isWaiting, "came"))
	code = append(code, s.raise(node.EventUnblocked)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("came"))
	return append(code, s.raise(node.EventScheduled)...)
}

// wake: what the thread waits for is there. One may be woken that had not gone to sleep
// yet.
func (s *scheduling) wake() asm.Instructions {
	code := asm.Instructions{
		asm.JNE.Imm(asm.R1, isWaiting, end),
		asm.Mov.Imm(asm.R1, isReady),
	}
	code = append(code, enter()...)
	return append(code, s.raise(node.EventUnblocked)...)
}

// raise has those do their work who want an event, whose time is in hitAt.
func (s *scheduling) raise(kind node.EventKind) asm.Instructions {
	var code asm.Instructions
	for _, l := range s.list {
		if l.point.kind == kind {
			s.raised++
			code = append(code, s.part(l, fmt.Sprint("raised", s.raised))...)
		}
	}
	return code
}
