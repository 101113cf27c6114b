//go:build linux && amd64

package code

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// If a signal, a stop or a tracer interrupts a system call, the call returns a special error to the kernel,
// which the program never sees. Then either the thread makes the call again at once, or it first runs a
// signal handler and makes the call again when the handler returns, or the handler returns to the program
// and the call fails with EINTR. In each case this is one call, which ends when the program gets its
// result.
//
// A table has the interrupted calls of each thread. They are a stack, because handlers make system calls,
// too. A call is the restart of an interrupted one if it is the next call of the thread, or the next after
// rt_sigreturn, and stack pointer and return address are the same. If a handler ends by longjmp, its call
// stays on the stack until there is no room; this does no harm.

// Results of interrupted calls: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
// Between them is ENOIOCTLCMD, which is a normal result.
const (
	firstRestart = -512
	noRestart    = -515
	lastRestart  = -516
)

// An entry of the table: offsets.
const (
	brokenDepth = 0 // how many calls are on the stack
	brokenState = 8
	BrokenPID   = 16 // process id
	brokenCalls = 24 // of each call: stack pointer, return address, number
	brokenCall  = 24

	mostBroken   = 4
	SizeOfBroken = brokenCalls + mostBroken*brokenCall
)

// States of a thread.
const (
	isElsewhere = iota // it runs a handler, or is back from one
	isExpected         // the next call is a restart of the innermost call of the stack
	isAgain            // it is in the restarted call
)

// stackBroken is the stack offset of a new entry.
const stackBroken = -40 - SizeOfBroken

// broken puts the address of the current thread's entry into R0. It jumps to none if there is no entry, and
// to out if the thread cannot be identified.
func (e *Events) broken(none, out string) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R1, found, RecordInterrupted, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, none),
	}
	return append(append(code, e.key(out)...), append(e.lookup(), asm.JEq.Imm(asm.R0, 0, none))...)
}

// key stores the number and the start of the current thread.
func (e *Events) key(out string) asm.Instructions {
	none := asm.StoreImm(asm.RFP, stackCell, 0, asm.Word)
	if e.Layout.nested {
		return append(e.Layout.thread(out), none)
	}
	return asm.Instructions{
		none,
		asm.LoadMem(asm.R1, whose, e.Layout.started, asm.DWord),
		asm.StoreMem(asm.RFP, stackStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, e.Layout.pid, asm.Word),
		asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word),
	}
}

func (e *Events) lookup() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, e.Interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.FnMapLookupElem.Call(),
	}
}

// innermostBroken puts the address of the innermost call into R2, and that of the thread's registers into
// R3. It jumps to none if there is no call.
func innermostBroken(none string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R0, brokenDepth, asm.DWord),
		asm.Sub.Imm(asm.R2, 1),
		asm.JGT.Imm(asm.R2, mostBroken-1, none),
		asm.Mul.Imm(asm.R2, brokenCall),
		asm.Add.Reg(asm.R2, asm.R0),
		argument(asm.R3, 0),
	}
}

// isHere jumps to elsewhere unless the call at R2 was made with the stack pointer and return address of the
// registers at R3.
func isHere(elsewhere string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R4, asm.R3, regSP, asm.DWord),
		asm.LoadMem(asm.R5, asm.R2, brokenCalls, asm.DWord),
		asm.JNE.Reg(asm.R4, asm.R5, elsewhere),
		asm.LoadMem(asm.R4, asm.R3, regIP, asm.DWord),
		asm.LoadMem(asm.R5, asm.R2, brokenCalls+8, asm.DWord),
		asm.JNE.Reg(asm.R4, asm.R5, elsewhere),
	}
}

// isAgain is for the start of a call. It jumps to out if the call is a restart of an interrupted one,
// otherwise to fresh.
func (e *Events) isAgain(fresh, out string) asm.Instructions {
	code := append(e.broken("new", out),
		asm.LoadMem(asm.R1, asm.R0, brokenState, asm.DWord),
		asm.JNE.Imm(asm.R1, isExpected, "new"),
		asm.Mov.Imm(asm.R1, isElsewhere),
		asm.StoreMem(asm.R0, brokenState, asm.R1, asm.DWord))
	code = append(code, innermostBroken("new")...)
	code = append(code, isHere("new")...)
	return append(code,
		asm.JEq.Imm(number, unix.SYS_RESTART_SYSCALL, "same"),
		asm.LoadMem(asm.R4, asm.R2, brokenCalls+16, asm.DWord),
		asm.JNE.Reg(asm.R4, number, "new"),
		asm.Mov.Imm(asm.R1, isAgain).WithSymbol("same"),
		asm.StoreMem(asm.R0, brokenState, asm.R1, asm.DWord),
		asm.Ja.Label(out),
		asm.JEq.Imm(number, unix.SYS_RESTART_SYSCALL, out).WithSymbol("new"),
		asm.Ja.Label(fresh))
}

// breakOff is for the return of an interrupted call. It adds the call to the stack, unless that was done
// when the call was first interrupted.
func (e *Events) breakOff(out string) asm.Instructions {
	expect := asm.Instructions{
		asm.Mov.Imm(asm.R1, isExpected),
		asm.StoreMem(asm.R0, brokenState, asm.R1, asm.DWord),
	}
	code := append(e.key(out), e.lookup()...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, "first"),
		asm.LoadMem(asm.R1, asm.R0, brokenState, asm.DWord),
		asm.JNE.Imm(asm.R1, isAgain, "push"))
	code = append(code, expect...)
	code = append(code, asm.Ja.Label(out))
	code = append(code, e.newBroken("first", out)...)
	code = append(code,
		asm.JEq.Imm(number, unix.SYS_RESTART_SYSCALL, out).WithSymbol("push"), // the call began before the monitor observed the process
		asm.LoadMem(asm.R2, asm.R0, brokenDepth, asm.DWord),
		asm.JLT.Imm(asm.R2, mostBroken, "room"),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R1, asm.R2).WithSymbol("room"),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, brokenDepth, asm.R1, asm.DWord),
		asm.Mul.Imm(asm.R2, brokenCall),
		asm.Add.Reg(asm.R2, asm.R0),
		argument(asm.R3, 0),
		asm.LoadMem(asm.R1, asm.R3, regSP, asm.DWord),
		asm.StoreMem(asm.R2, brokenCalls, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R3, regIP, asm.DWord),
		asm.StoreMem(asm.R2, brokenCalls+8, asm.R1, asm.DWord),
		asm.StoreMem(asm.R2, brokenCalls+16, number, asm.DWord))
	code = append(code, expect...)
	return append(code, asm.Ja.Label(out))
}

// newBroken makes an entry of the table.
func (e *Events) newBroken(label, out string) asm.Instructions {
	code := asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol(label)}
	for at := int16(0); at < SizeOfBroken; at += 8 {
		code = append(code, asm.StoreMem(asm.RFP, stackBroken+at, asm.R1, asm.DWord))
	}
	code = append(code,
		asm.LoadMem(asm.R1, found, RecordPID, asm.Word),
		asm.StoreMem(asm.RFP, stackBroken+BrokenPID, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, e.Interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackBroken),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JNE.Imm(asm.R0, 0, out),
		asm.Mov.Imm(asm.R1, 1),
		asm.Add.Imm(found, RecordInterrupted),
		asm.StoreXAdd(found, asm.R1, asm.DWord),
		asm.Sub.Imm(found, RecordInterrupted))
	return append(append(code, e.lookup()...), asm.JEq.Imm(asm.R0, 0, out))
}

// resume is for the final return of a call. If the call was interrupted before, or fails because a handler
// has run, resume takes it from the stack and puts its number into the register number. It continues at
// ended in any case.
func (e *Events) resume(ended, out string) asm.Instructions {
	code := append(e.broken(ended, out),
		asm.LoadMem(asm.R1, asm.R0, brokenState, asm.DWord),
		asm.JEq.Imm(asm.R1, isAgain, "done"),
		asm.JNE.Imm(number, -1, ended))
	for i := mostBroken - 1; i >= 0; i-- {
		other := fmt.Sprint("other", i)
		code = append(code,
			asm.LoadMem(asm.R1, asm.R0, brokenDepth, asm.DWord),
			asm.JLE.Imm(asm.R1, int32(i), other),
			argument(asm.R3, 0),
			asm.LoadMem(asm.R4, asm.R3, regSP, asm.DWord),
			asm.LoadMem(asm.R5, asm.R0, int16(brokenCalls+i*brokenCall), asm.DWord),
			asm.JNE.Reg(asm.R4, asm.R5, other),
			asm.Mov.Imm(asm.R1, int32(i+1)),
			asm.StoreMem(asm.R0, brokenDepth, asm.R1, asm.DWord),
			asm.Ja.Label("returned"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol(other))
	}
	code = append(code,
		asm.Ja.Label(ended),
		argument(asm.R1, 1).WithSymbol("returned"),
		asm.JEq.Imm(asm.R1, -int32(unix.EINTR), "done"),
		asm.Mov.Imm(asm.R1, isExpected),
		asm.StoreMem(asm.R0, brokenState, asm.R1, asm.DWord),
		asm.Ja.Label(ended))
	return append(code, e.pop(ended)...)
}

// pop takes the innermost call from the stack.
func (e *Events) pop(ended string) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Imm(asm.R1, isElsewhere).WithSymbol("done"),
		asm.StoreMem(asm.R0, brokenState, asm.R1, asm.DWord),
	}
	code = append(code, innermostBroken(ended)...)
	code = append(code,
		asm.LoadMem(number, asm.R2, brokenCalls+16, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, brokenDepth, asm.DWord),
		asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, brokenDepth, asm.R1, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, ended),
		asm.LoadMapPtr(asm.R1, e.Interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.FnMapDeleteElem.Call(),
		asm.JNE.Imm(asm.R0, 0, ended),
		asm.Mov.Imm(asm.R1, -1),
		asm.Add.Imm(found, RecordInterrupted),
		asm.StoreXAdd(found, asm.R1, asm.DWord),
		asm.Sub.Imm(found, RecordInterrupted))
	return append(code, asm.Ja.Label(ended))
}
