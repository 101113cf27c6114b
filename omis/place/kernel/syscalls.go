//go:build linux && amd64

package kernel

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/host/calls"
)

// System calls are seen at the tracepoints sys_enter and sys_exit. The former suffices
// for calls that start; but a call that is interrupted and made again has started once
// only, and that it is interrupted shows where it ends (interrupted.go).

const regOrig = 15 * 8 // of pt_regs: the number of the system call

// compat is the bit of thread_info.status that a system call of 32-bit code sets
// (TS_COMPAT).
const compat = 2

// argument loads what a tracepoint tells, in the order of its declaration.
func argument(to asm.Register, n int16) asm.Instruction {
	return asm.LoadMem(to, told, 8*n, asm.DWord)
}

// callRoot finds out whose system call it is.
func (e *events) callRoot(out string) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(told, asm.R1),
		asm.FnGetCurrentTaskBtf.Call(),
		asm.Mov.Reg(whose, asm.R0),
	}
	return append(code, e.records.find(e.layout, whose, out)...)
}

// clamp makes otherCalls of numbers that the table of names does not know. Its labels
// begin with a name.
func (e *events) clamp(name string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, whose, e.layout.status, asm.Word),
		asm.And.Imm(asm.R1, compat),
		asm.JNE.Imm(asm.R1, 0, name+"other"),
		asm.JLT.Imm(number, otherCalls, name+"known"),
		asm.Mov.Imm(number, otherCalls).WithSymbol(name + "other"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(name + "known"),
	}
}

// run hands over to the program for a number, in the table of the record at an offset.
func (e *events) run(h *hook, table int16) asm.Instructions {
	code := asm.Instructions{
		asm.LSh.Imm(number, 1),
		asm.Add.Reg(found, number),
		asm.LoadMem(asm.R3, found, table, asm.Half),
		asm.JEq.Imm(asm.R3, 0, end),
	}
	code = append(code, h.handOver(told)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// ofMonitor ends the program where the number in R1 says that the thread makes its call
// for the monitor.
func ofMonitor() asm.Instructions {
	return asm.Instructions{asm.RSh.Imm(asm.R1, 32), asm.JEq.Imm(asm.R1, calls.Mark, end)}
}

// onEnter: a thread makes a system call.
func (e *events) onEnter(h *hook) asm.Instructions {
	code := e.callRoot(end)
	code = append(code, argument(asm.R2, 0), asm.LoadMem(asm.R1, asm.R2, regOrig, asm.DWord))
	code = append(code, ofMonitor()...)
	code = append(code, argument(number, 1))
	code = append(code, e.clamp("enter")...)
	code = append(code, e.isAgain("fresh", end)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("fresh"))
	return append(code, e.run(h, recordStarted)...)
}

// onExit: a thread comes back from a system call. A new thread or process comes out of
// the one that made it, with 0, and has not made it.
func (e *events) onExit(h *hook) asm.Instructions {
	code := e.callRoot(end)
	code = append(code,
		argument(asm.R2, 0),
		asm.LoadMem(number, asm.R2, regOrig, asm.DWord),
		asm.Mov.Reg(asm.R1, number))
	code = append(code, ofMonitor()...)
	code = append(code,
		argument(asm.R1, 1),
		asm.Add.Imm(asm.R1, -lastRestart), // unsigned: what is no restart is far above
		asm.JGT.Imm(asm.R1, firstRestart-lastRestart, "whole"),
		asm.JEq.Imm(asm.R1, noRestart-lastRestart, "whole"))
	code = append(code, e.clamp("broken")...)
	code = append(code, e.breakOff(end)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("whole"))
	code = append(code, e.resume("ended", end)...)
	code = append(code,
		asm.JNE.Imm(number, -1, "called").WithSymbol("ended"),
		asm.Mov.Imm(number, unix.SYS_RT_SIGRETURN), // the number that it restored is none
		asm.JEq.Imm(number, unix.SYS_RESTART_SYSCALL, end).WithSymbol("called"))
	for _, nr := range []int32{unix.SYS_CLONE, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CLONE3} {
		code = append(code, asm.JEq.Imm(number, nr, "made"))
	}
	code = append(code,
		asm.Ja.Label("own"),
		argument(asm.R1, 1).WithSymbol("made"),
		asm.JEq.Imm(asm.R1, 0, end),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("own"))
	code = append(code, e.clamp("exit")...)
	return append(code, e.run(h, recordEnded)...)
}

// newInterrupted makes the table of interrupted calls.
func newInterrupted(set maps) (*ebpf.Map, error) {
	return set.Map(&ebpf.MapSpec{Name: "interrupted", Type: ebpf.Hash, KeySize: 16, ValueSize: sizeOfBroken, MaxEntries: 1 << 12, Flags: unix.BPF_F_NO_PREALLOC})
}
