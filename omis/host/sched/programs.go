//go:build linux

package sched

import (
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Layout of a record in the ring buffer.
const (
	recordTime = 0
	recordTID  = 8
	recordKind = 12
	recordSize = 16
)

// Stack of the programs.
const (
	stackTID    = -4 // key of the map of threads
	stackLevel  = -8
	stackPID    = -16 // pointer to a struct pid
	stackRan    = -24
	stackBefore = -32
	stackRecord = -32 - recordSize
	stackIOWait = stackRecord - 8
)

// Members of watched.
const (
	memberWanted = 0
	memberState  = 4
	memberSince  = 8
)

// Arguments of sched_switch. sched_wakeup has one argument, the task.
const (
	argPreempt = 8 * iota
	argPrev
	argNext
	argState
)

// waiting is the set of states in which a thread waits for something: interruptible and
// uninterruptible. Other states are stopped, traced, dead.
const waiting = 1 | 2

// programs assembles the programs. Register 6 holds the arguments, register 7 the map
// element of the current thread, register 8 the time.
type programs struct {
	layout
	threads, lost, ring *ebpf.Map
	labels              int
}

// onSwitch returns the program for a switch of a processor from one thread to another.
func (p *programs) onSwitch() asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, p.find(argPrev, "next")...)
	code = append(code, p.catchUp()...)
	code = append(code, enter(0)...)
	code = append(code, p.raise(Descheduled)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.R6, argPreempt, asm.DWord),
		asm.And.Imm(asm.R1, 1), // a bool; the other bits of the register are undefined
		asm.JNE.Imm(asm.R1, 0, "next"),
		asm.LoadMem(asm.R1, asm.R6, argState, asm.DWord),
		asm.And.Imm(asm.R1, waiting),
		asm.JEq.Imm(asm.R1, 0, "next"),
	)
	code = append(code, enter(isBlocked)...)
	code = append(code, p.raise(Blocked)...)
	code = append(code, asm.LoadMem(asm.R3, asm.R6, argPrev, asm.DWord))
	code = append(code, read(stackIOWait, 1, p.inIOWait)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, stackIOWait, asm.Byte),
		asm.And.Imm(asm.R1, p.ioWaitBit),
		asm.JEq.Imm(asm.R1, 0, "next"))
	code = append(code, p.raise(BlockedOnIO)...)

	next := p.find(argNext, "out")
	next[0] = next[0].WithSymbol("next")
	code = append(code, next...)
	// A signal may have made the thread runnable without a wake-up.
	code = append(code, p.unblock()...)
	code = append(code, enter(isRunning)...)
	code = append(code, p.raise(Scheduled)...)
	return append(code, end()...)
}

// onWakeup returns the program for the wake-up of a thread. The kernel may also wake a
// thread that is not asleep yet.
func (p *programs) onWakeup() asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, p.find(0, "out")...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.R7, memberState, asm.Word),
		asm.JNE.Imm(asm.R1, isBlocked, "out"))
	code = append(code, enter(0)...)
	code = append(code, p.raise(Unblocked)...)
	return append(code, end()...)
}

// enter stores the state of a thread and its time.
func enter(state int64) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.R7, memberState, state, asm.Word),
		asm.StoreMem(asm.R7, memberSince, asm.R8, asm.DWord),
	}
}

// catchUp reports a missed wake-up and switch to the thread: on some kernels (seen in a
// virtual machine, where perf missed the same ones) idle processors wake threads and
// switch to them without a tracepoint. The time of the switch follows from the thread's
// running time since then, but is not before its last event.
func (p *programs) catchUp() asm.Instructions {
	done := p.label()
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, memberState, asm.Word),
		asm.JEq.Imm(asm.R1, isRunning, done),
		asm.LoadMem(asm.R3, asm.R6, argPrev, asm.DWord),
	}
	code = append(code, read(stackRan, 8, p.entity+p.ran)...)
	code = append(code, asm.LoadMem(asm.R3, asm.R6, argPrev, asm.DWord))
	code = append(code, read(stackBefore, 8, p.entity+p.ranBefore)...)
	code = append(code,
		asm.Mov.Reg(asm.R9, asm.R8),
		asm.LoadMem(asm.R1, asm.RFP, stackRan, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackBefore, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.Sub.Reg(asm.R8, asm.R1),
		asm.LoadMem(asm.R1, asm.R7, memberSince, asm.DWord),
		asm.JLT.Reg(asm.R8, asm.R1, "early"),
		asm.JLE.Reg(asm.R8, asm.R9, "estimated"),
		asm.Mov.Reg(asm.R8, asm.R1).WithSymbol("early"),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("estimated"),
	)
	code = append(code, p.unblock()...)
	code = append(code, p.raise(Scheduled)...)
	return append(code,
		asm.Mov.Reg(asm.R8, asm.R9),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(done))
}

func end() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return()}
}

// find looks up the thread of an argument; it jumps to the label otherwise if that thread
// is not watched.
func (p *programs) find(arg int16, otherwise string) asm.Instructions {
	code := asm.Instructions{asm.LoadMem(asm.R3, asm.R6, arg, asm.DWord)}
	code = append(code, p.number(otherwise)...)
	return append(code,
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.LoadMapPtr(asm.R1, p.threads.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, otherwise),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
	)
}

// unblock raises Unblocked for a thread whose state is blocked.
func (p *programs) unblock() asm.Instructions {
	done := p.label()
	code := append(asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, memberState, asm.Word),
		asm.JNE.Imm(asm.R1, isBlocked, done),
	}, p.raise(Unblocked)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(done))
}

// raise writes a record of an event if the event is wanted.
func (p *programs) raise(k Kind) asm.Instructions {
	done := p.label()
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, memberWanted, asm.Word),
		asm.And.Imm(asm.R1, int32(k)),
		asm.JEq.Imm(asm.R1, 0, done),
		asm.StoreMem(asm.RFP, stackRecord+recordTime, asm.R8, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.StoreMem(asm.RFP, stackRecord+recordTID, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, stackRecord+recordKind, int64(k), asm.Word),
		asm.LoadMapPtr(asm.R1, p.ring.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackRecord),
		asm.Mov.Imm(asm.R3, recordSize),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, done),
		asm.LoadMapValue(asm.R1, p.lost.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(done),
	}
}

func (p *programs) label() string {
	p.labels++
	return "label" + strconv.Itoa(p.labels)
}

// number stores the number of the task in R3, in the monitor's pid namespace; it jumps to
// the label otherwise if the task has none there.
func (l layout) number(otherwise string) asm.Instructions {
	if l.level == 0 {
		return read(stackTID, 4, l.pid)
	}
	code := append(l.readPIDLevel(otherwise),
		asm.LoadMem(asm.R1, asm.RFP, stackLevel, asm.Word),
		asm.JLT.Imm(asm.R1, l.level, otherwise),
		asm.LoadMem(asm.R3, asm.RFP, stackPID, asm.DWord),
	)
	return append(code, read(stackTID, 4, l.numbers+l.level*l.upid+l.nr)...)
}

// readPIDLevel copies two values of the task at R3 to the stack: the address of its
// struct pid, and the level of this. It jumps to otherwise if the task is dead, because a
// dead task has no struct pid.
func (l layout) readPIDLevel(otherwise string) asm.Instructions {
	code := asm.Instructions{asm.StoreImm(asm.RFP, stackLevel, 0, asm.Word)}
	code = append(code, read(stackPID, 8, l.threadPID)...)
	code = append(code,
		asm.LoadMem(asm.R3, asm.RFP, stackPID, asm.DWord),
		asm.JEq.Imm(asm.R3, 0, otherwise),
	)
	return append(code, read(stackLevel, 4, l.pidLevel)...)
}

// read copies a member of the struct at R3 onto the stack, or zeros if the memory is
// unreadable.
func read(to int16, size, offset int32) asm.Instructions {
	return asm.Instructions{
		asm.Add.Imm(asm.R3, offset),
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, size),
		asm.FnProbeReadKernel.Call(),
	}
}
