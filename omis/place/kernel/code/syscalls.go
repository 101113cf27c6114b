//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/host/calls"
)

// System calls are observed at the tracepoints sys_enter and sys_exit. To count starts of calls, sys_enter
// alone is not enough: a call that is interrupted and restarted counts once, and the interruption shows at
// sys_exit only (interrupted.go).

// Offsets in pt_regs.
const (
	regMark = 9 * 8  // r8, where rt_sigreturn has its mark
	regOrig = 15 * 8 // the number of the system call
)

// compat is the bit of thread_info.status that is set in system calls of 32-bit code (TS_COMPAT).
const compat = 2

// argument loads the n-th argument of the tracepoint.
func argument(to asm.Register, n int16) asm.Instruction {
	return asm.LoadMem(to, told, 8*n, asm.DWord)
}

// callRoot begins a root program: it finds the record of the current process.
func (e *Events) callRoot(out string) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(told, asm.R1),
		asm.FnGetCurrentTaskBtf.Call(),
		asm.Mov.Reg(whose, asm.R0),
	}
	return append(code, e.find(e.Layout, whose, out)...)
}

// clamp replaces numbers that the table of names does not have by OtherCalls. Its labels begin with name.
func (e *Events) clamp(name string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, whose, e.Layout.status, asm.Word),
		asm.And.Imm(asm.R1, compat),
		asm.JNE.Imm(asm.R1, 0, name+"other"),
		asm.JLT.Imm(number, OtherCalls, name+"known"),
		asm.Mov.Imm(number, OtherCalls).WithSymbol(name + "other"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(name + "known"),
	}
}

// run continues with the program for a system call. table is the offset of the slots in the record.
func (e *Events) run(b *Bodies, table int16) asm.Instructions {
	code := asm.Instructions{
		asm.LSh.Imm(number, 1),
		asm.Add.Reg(found, number),
		asm.LoadMem(asm.R3, found, table, asm.Half),
		asm.JEq.Imm(asm.R3, 0, end),
	}
	code = append(code, b.handOver(told)...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// ofMonitor ends the program if the number in R1 has the mark of calls that a thread makes for the monitor.
func ofMonitor() asm.Instructions {
	return asm.Instructions{asm.RSh.Imm(asm.R1, 32), asm.JEq.Imm(asm.R1, calls.Mark, end)}
}

// Since Linux 6.14 the kernel itself makes threads call uretprobe, and since 6.18 uprobe, where a probe of any tool is on
// a return or on a five-byte nop. These are no calls of the program. When they end, the register with the number is -1,
// as it is when rt_sigreturn ends. So a table has the threads that are in rt_sigreturn.

// ofProbe jumps to out if the number is that of a call that the kernel uses for probes.
func ofProbe(out string) asm.Instructions {
	return asm.Instructions{asm.JEq.Imm(number, unix.SYS_URETPROBE, out), asm.JEq.Imm(number, unix.SYS_UPROBE, out)}
}

// returns is for the start of a call. It records that the thread is in rt_sigreturn. It jumps to out if that is the
// rt_sigreturn of the handler for breakpoints (omis/linux/resident), whose number cannot have a mark.
func (e *Events) returns(out string) asm.Instructions {
	code := asm.Instructions{
		asm.JNE.Imm(number, unix.SYS_RT_SIGRETURN, "stays"),
		argument(asm.R2, 0), asm.LoadMem(asm.R1, asm.R2, regMark, asm.DWord),
		asm.LoadImm(asm.R2, int64(calls.Marked(unix.SYS_RT_SIGRETURN)), asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, out),
	}
	code = append(code, e.key(out)...)
	return append(code,
		asm.LoadMapPtr(asm.R1, e.Returning.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("stays"))
}

// hasReturned is for the end of a call. It jumps to out if the number is -1 and the thread was not in rt_sigreturn.
func (e *Events) hasReturned(out string) asm.Instructions {
	code := append(asm.Instructions{asm.JNE.Imm(number, -1, "numbered")}, e.key(out)...)
	return append(code,
		asm.LoadMapPtr(asm.R1, e.Returning.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.FnMapDeleteElem.Call(),
		asm.JNE.Imm(asm.R0, 0, out),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("numbered"))
}

// OnEnter assembles the root program for starts of system calls.
func (e *Events) OnEnter(b *Bodies) asm.Instructions {
	code := e.callRoot(end)
	code = append(code, argument(asm.R2, 0), asm.LoadMem(asm.R1, asm.R2, regOrig, asm.DWord))
	code = append(code, ofMonitor()...)
	code = append(code, argument(number, 1))
	code = append(code, e.clamp("enter")...)
	code = append(code, ofProbe(end)...)
	code = append(code, e.returns(end)...)
	code = append(code, e.isAgain("fresh", end)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("fresh"))
	return append(code, e.run(b, RecordStarted)...)
}

// OnExit assembles the root program for ends of system calls. A new thread or process returns 0 from the
// call of its creator; this is not the end of a call.
func (e *Events) OnExit(b *Bodies) asm.Instructions {
	code := e.callRoot(end)
	code = append(code,
		argument(asm.R2, 0),
		asm.LoadMem(number, asm.R2, regOrig, asm.DWord),
		asm.Mov.Reg(asm.R1, number))
	code = append(code, ofMonitor()...)
	code = append(code, e.hasReturned(end)...)
	code = append(code,
		argument(asm.R1, 1),
		asm.Add.Imm(asm.R1, -lastRestart), // results that are not of interrupted calls become large unsigned numbers
		asm.JGT.Imm(asm.R1, firstRestart-lastRestart, "whole"),
		asm.JEq.Imm(asm.R1, noRestart-lastRestart, "whole"))
	code = append(code, e.clamp("broken")...)
	code = append(code, e.breakOff(end)...)
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("whole"))
	code = append(code, e.resume("ended", end)...)
	code = append(code,
		asm.JNE.Imm(number, -1, "called").WithSymbol("ended"),
		asm.Mov.Imm(number, unix.SYS_RT_SIGRETURN), // after rt_sigreturn the register has what the signal frame restored
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
	code = append(code, ofProbe(end)...)
	return append(code, e.run(b, RecordEnded)...)
}
