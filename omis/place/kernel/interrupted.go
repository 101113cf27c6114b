//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// A system call that a signal, a stop or a tracer interrupts comes back with a number
// that the program never sees. Then one of three things happens: the thread makes it
// again at once; it runs a handler first, and makes it again when that returns; or
// the handler returns to where the call has failed with EINTR. Each counts as one call,
// which ends when the program gets its result.
//
// What was interrupted stands in a table by threads: a small stack, since handlers make
// calls as well. A call that is made again is told by the stack pointer and the
// address it returns to; it comes next, or next after rt_sigreturn. What a handler
// left by a longjmp stays on the stack until there is no room, and does no harm.

// Results of interrupted calls (ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND,
// ERESTART_RESTARTBLOCK); one between them means something else (ENOIOCTLCMD).
const (
	firstRestart = -512
	noRestart    = -515
	lastRestart  = -516
)

// What the table knows of a thread.
const (
	brokenDepth = 0 // how many calls stand on the stack
	brokenState = 8
	brokenPID   = 16 // its process
	brokenCalls = 24 // each: stack pointer, address, number
	brokenCall  = 24

	mostBroken   = 4
	sizeOfBroken = brokenCalls + mostBroken*brokenCall
)

// States.
const (
	isElsewhere = iota // in a handler, or back from it
	isExpected         // the next call is the innermost one of the stack, again
	isAgain            // in that call
)

// stackBroken is where a new row of the table is made.
const stackBroken = -40 - sizeOfBroken

// broken finds the row of the current thread: R0 is its address; it goes to none where
// there is none.
func (e *events) broken(none, out string) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R1, found, recordInterrupted, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, none),
	}
	return append(append(code, e.key(out)...), append(e.lookup(), asm.JEq.Imm(asm.R0, 0, none))...)
}

// key puts the current thread's number and start on the stack.
func (e *events) key(out string) asm.Instructions {
	none := asm.StoreImm(asm.RFP, stackCell, 0, asm.Word)
	if e.layout.nested {
		return append(e.layout.thread(out), none)
	}
	return asm.Instructions{
		none,
		asm.LoadMem(asm.R1, whose, e.layout.started, asm.DWord),
		asm.StoreMem(asm.RFP, stackStarted, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, whose, e.layout.pid, asm.Word),
		asm.StoreMem(asm.RFP, stackTID, asm.R1, asm.Word),
	}
}

func (e *events) lookup() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, e.interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.FnMapLookupElem.Call(),
	}
}

// innermostBroken puts the address of the innermost call into R2, and the registers of
// the thread into R3; it goes to none where there is no call.
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

// isHere goes elsewhere unless a call on the stack, at R2, was made where the thread
// stands, whose registers R3 points to.
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

// isAgain: a call starts. Where it is one that was interrupted, it goes out; else it goes
// on to fresh.
func (e *events) isAgain(fresh, out string) asm.Instructions {
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

// breakOff: a call comes back that was interrupted. One that was made again stands on
// the stack already.
func (e *events) breakOff(out string) asm.Instructions {
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
		asm.JEq.Imm(number, unix.SYS_RESTART_SYSCALL, out).WithSymbol("push"), // of a call that started before all this
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

// newBroken makes a row of the table.
func (e *events) newBroken(label, out string) asm.Instructions {
	code := asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol(label)}
	for at := int16(0); at < sizeOfBroken; at += 8 {
		code = append(code, asm.StoreMem(asm.RFP, stackBroken+at, asm.R1, asm.DWord))
	}
	code = append(code,
		asm.LoadMem(asm.R1, found, recordPID, asm.Word),
		asm.StoreMem(asm.RFP, stackBroken+brokenPID, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, e.interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, stackBroken),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.JNE.Imm(asm.R0, 0, out),
		asm.Mov.Imm(asm.R1, 1),
		asm.Add.Imm(found, recordInterrupted),
		asm.StoreXAdd(found, asm.R1, asm.DWord),
		asm.Sub.Imm(found, recordInterrupted))
	return append(append(code, e.lookup()...), asm.JEq.Imm(asm.R0, 0, out))
}

// resume: a call comes back, for good. Where it was interrupted before, or has just now
// failed because a handler ran instead, the number is that of the call; it goes to
// ended then, and where nothing has to do with interrupted calls.
func (e *events) resume(ended, out string) asm.Instructions {
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
func (e *events) pop(ended string) asm.Instructions {
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
		asm.LoadMapPtr(asm.R1, e.interrupted.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackStarted),
		asm.FnMapDeleteElem.Call(),
		asm.JNE.Imm(asm.R0, 0, ended),
		asm.Mov.Imm(asm.R1, -1),
		asm.Add.Imm(found, recordInterrupted),
		asm.StoreXAdd(found, asm.R1, asm.DWord),
		asm.Sub.Imm(found, recordInterrupted))
	return append(code, asm.Ja.Label(ended))
}

// forgetEnded takes threads out of the table of interrupted calls that have ended.
func (e *events) forgetEnded() {
	for id, w := range e.watched {
		if n := w.record.interrupted(); n.Load() > 0 {
			n.Add(-e.forget(id))
		}
	}
}

// forget takes the ended threads of a process out of the table of interrupted calls, and
// says how many those were.
func (e *events) forget(id omis.ProcID) (n int64) {
	var k key
	var ended []key
	row := make([]byte, sizeOfBroken)
	for err := e.interrupted.NextKey(nil, &k); err == nil; err = e.interrupted.NextKey(k, &k) {
		if e.interrupted.Lookup(k, row) != nil || binary.LittleEndian.Uint64(row[brokenPID:]) != uint64(id.PID) {
			continue
		}
		if ticks, err := proc.ThreadStart(id.PID, int(k.TID)); err != nil || ticks != k.Started/nsPerTick {
			ended = append(ended, k)
		}
	}
	for _, k := range ended {
		if e.interrupted.Delete(k) == nil {
			n++
		}
	}
	return n
}
