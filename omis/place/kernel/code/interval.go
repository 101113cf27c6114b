//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// Programs measure intervals as a timer of the monitor does (package pa): the open intervals of a thread are a
// stack, and a stop ends the interval whose start had the same stack pointer.

// one adds 1 to a member of the row.
func one(member int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, member, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(rowAt, member, asm.R1, asm.DWord),
	}
}

// Registers of start and stop.
const (
	deep = asm.R0 // address of the open intervals outside the row, 0 if there are none
	sp   = asm.R3 // stack pointer of the hit
	at   = asm.R5 // address or number of an interval
	open = kept   // number of open intervals
)

// depth loads the number of open intervals into the register open. If the number is least or greater,
// depth also puts the address of the intervals outside the row into the register deep, otherwise 0. If
// the thread has no memory for such intervals, depth allocates it, and jumps to full if that fails. If
// full is "", depth allocates nothing, and skips the step instead.
func (p *Pool) depth(name string, least int32, full string) asm.Instructions {
	shallow, have := name+"shallow", name+"deep"
	code := asm.Instructions{
		asm.LoadMem(open, rowAt, rowDepth, asm.DWord),
		asm.JGT.Imm(open, maxOpen, name+"over"),
		asm.JLT.Imm(open, least, shallow),
	}
	code = append(code, lookup(p.Deep, stackRow)...)
	code = append(code, asm.JNE.Imm(deep, 0, have))
	if full == "" {
		code = append(code, asm.Ja.Label(name+"over"))
	} else {
		code = append(code,
			asm.LoadMapPtr(asm.R1, p.Deep.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackRow),
			asm.LoadMapValue(asm.R3, p.Blank.FD(), 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call())
		code = append(code, lookup(p.Deep, stackRow)...)
		code = append(code, asm.JNE.Imm(deep, 0, have), asm.Ja.Label(full))
	}
	return append(code,
		asm.Mov.Imm(deep, 0).WithSymbol(shallow),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(have))
}

// reach replaces the number of an interval in the register at by its address. There is memory for the
// interval.
func reach(name string) asm.Instructions {
	isNear, have := name+"near", name+"slot"
	return asm.Instructions{
		asm.JLT.Imm(at, near, isNear),
		asm.Sub.Imm(at, near), asm.LSh.Imm(at, 4), asm.Add.Reg(at, deep),
		asm.Ja.Label(have),
		asm.LSh.Imm(at, 4).WithSymbol(isNear), asm.Add.Reg(at, rowAt), asm.Add.Imm(at, rowOpen),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(have),
	}
}

// pop removes innermost intervals until the code of rule jumps out of the loop, or no interval is left;
// then it jumps to none. Each removed interval counts as unfinished.
func pop(f *Form, whole bool, name, none string, rule asm.Instructions) asm.Instructions {
	loop := name + "loop"
	place := asm.LoadMem(sp, regsAt, regSP, asm.DWord)
	if whole {
		place = asm.Mov.Imm(sp, wholeStack)
	}
	code := append(begin(f),
		place,
		asm.JEq.Imm(open, 0, none).WithSymbol(loop),
		asm.Mov.Reg(at, open), asm.Sub.Imm(at, 1))
	code = append(code, reach(name+"top")...)
	code = append(code, asm.LoadMem(asm.R1, at, 0, asm.DWord))
	code = append(code, rule...)
	code = append(code, one(rowUnfinished)...)
	return append(code, asm.Sub.Imm(open, 1), asm.Ja.Label(loop))
}

// start opens an interval. If an interval is open with the same stack pointer or a lower one, an exception
// or longjmp has left its function: start removes it. Intervals that were opened without a stack pointer
// stay. With whole, all intervals have the same place on the stack. The time is read last, so that the interval includes as little as possible of this program.
func (a *assembler) start(p *Pool, clock program.Clock, some, whole bool, name string) asm.Instructions {
	push, timed, room, keep, drop := name+"push", name+"timed", name+"room", name+"keep", name+"drop"
	code := p.depth(name, near, drop)
	if a.event {
		code = append(code, nest(p.Form, push)...)
	} else {
		code = append(code, pop(p.Form, whole, name, push, asm.Instructions{asm.JEq.Imm(asm.R1, 0, push), asm.JGT.Reg(asm.R1, sp, push)})...)
	}
	code = append(code, asm.Mov.Imm(asm.R1, 0).WithSymbol(push))
	if some {
		code = append(code, choose(name, timed, keep)...)
	}
	code = append(code,
		asm.JLT.Imm(open, maxOpen, room).WithSymbol(timed),
		asm.StoreMem(rowAt, rowDepth, open, asm.DWord))
	code = append(code, one(rowUnfinished)...)
	code = append(code,
		asm.Ja.Label(keep),
		asm.Mov.Reg(at, open).WithSymbol(room))
	code = append(code, reach(name+"new")...)
	code = append(code,
		asm.StoreMem(at, 0, sp, asm.DWord),
		asm.Add.Imm(open, 1),
		asm.StoreMem(rowAt, rowDepth, open, asm.DWord),
		asm.Mov.Reg(kept, at))
	switch {
	case !clock.IsTime():
		code = append(code, asm.LoadMem(asm.R1, asm.RFP, stackShown, asm.DWord), asm.StoreMem(kept, 8, asm.R1, asm.DWord))
	case clock == program.ClockCPU:
		code = append(append(code, a.Layout.cpu.read(name)...), asm.StoreMem(kept, 8, asm.R0, asm.DWord))
	case a.timed:
		code = append(code, asm.StoreMem(kept, 8, hitAt, asm.DWord))
	default:
		code = append(code, asm.FnKtimeGetNs.Call(), asm.StoreMem(kept, 8, asm.R0, asm.DWord))
	}
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(keep))
	code = append(code, done(p.Form)...)
	code = append(code, asm.Ja.Label(name+"over"), asm.Mov.Imm(asm.R0, 0).WithSymbol(drop))
	code = append(code, begin(p.Form)...)
	code = append(code, one(rowUnfinished)...)
	return append(code, done(p.Form)...)
}

// nest does for events without a stack pointer what pop does for others. At such events, a thread opens
// an interval inside another one only in a signal handler. So if maxOpen intervals are open, longjmp must
// have left the handlers, and nest removes all intervals.
func nest(f *Form, push string) asm.Instructions {
	return append(begin(f),
		asm.Mov.Imm(sp, 0),
		asm.JLT.Imm(open, maxOpen, push),
		asm.LoadMem(asm.R1, rowAt, rowUnfinished, asm.DWord),
		asm.Add.Imm(asm.R1, maxOpen),
		asm.StoreMem(rowAt, rowUnfinished, asm.R1, asm.DWord),
		asm.Mov.Imm(open, 0))
}

// stop closes the interval that was opened with the same stack pointer, and removes those opened with lower
// ones, which can never end. If start or stop has no stack pointer, it closes the innermost interval.
func (a *assembler) stop(p *Pool, clock program.Clock, i int, whole bool, name string) asm.Instructions {
	found, none := name+"found", name+"none"
	code := p.depth(name, near+1, "")
	if a.event {
		code = append(append(code, begin(p.Form)...),
			asm.JEq.Imm(open, 0, none),
			asm.Mov.Reg(at, open), asm.Sub.Imm(at, 1))
		code = append(code, reach(name+"top")...)
	} else {
		code = append(code, pop(p.Form, whole, name, none, asm.Instructions{
			asm.JEq.Reg(asm.R1, sp, found),
			asm.JEq.Imm(asm.R1, 0, found),
			asm.JGT.Reg(asm.R1, sp, none), // the interval was opened before the program was installed
		})...)
	}
	code = append(code,
		asm.Sub.Imm(open, 1).WithSymbol(found),
		asm.StoreMem(rowAt, rowDepth, open, asm.DWord),
		asm.LoadMem(asm.R2, at, 8, asm.DWord))
	code = append(code, length(clock, name)...)
	code = append(code, a.tell(i, asm.R1)...)
	code = append(code, measured(name)...)
	code = append(code, countInBucket(p.Form, name)...)
	code = append(code, asm.Ja.Label(name+"keep"))
	if !clock.IsElapsed() {
		unknown := one(rowUnfinished)
		unknown[0] = unknown[0].WithSymbol(name + "unknown")
		code = append(append(code, unknown...), asm.Ja.Label(name+"keep"))
	}
	code = append(code,
		asm.StoreMem(rowAt, rowDepth, open, asm.DWord).WithSymbol(none),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"keep"))
	return append(code, done(p.Form)...)
}

// length puts the length of an interval that began at the time in R2 into R1. It jumps to unknown if the CPU
// time is not known at one of the ends, or if a source was reset in between.
func length(clock program.Clock, name string) asm.Instructions {
	unknown, later := name+"unknown", name+"later"
	var code asm.Instructions
	switch {
	case clock == program.ClockWaiting:
		code = asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackShown, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, unknown),
			asm.JEq.Imm(asm.R2, 0, unknown),
		}
	case !clock.IsTime():
		return asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackShown, asm.DWord),
			asm.Sub.Reg(asm.R1, asm.R2),
			asm.JSLT.Imm(asm.R1, 0, unknown),
		}
	case clock == program.ClockCPU:
		code = asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackCPU, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, unknown),
			asm.JEq.Imm(asm.R2, 0, unknown),
		}
	default:
		code = asm.Instructions{asm.Mov.Reg(asm.R1, hitAt)}
	}
	return append(code,
		asm.JGE.Reg(asm.R1, asm.R2, later),
		asm.Mov.Reg(asm.R1, asm.R2),
		asm.Sub.Reg(asm.R1, asm.R2).WithSymbol(later))
}

// measured adds the duration in R1 to the row.
func measured(name string) asm.Instructions {
	least, noLeast, noMost := name+"least", name+"noleast", name+"nomost"
	code := asm.Instructions{
		asm.LoadMem(asm.R2, rowAt, rowCount, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, least),
		asm.LoadMem(asm.R3, rowAt, rowMin, asm.DWord),
		asm.JLE.Reg(asm.R3, asm.R1, noLeast),
		asm.StoreMem(rowAt, rowMin, asm.R1, asm.DWord).WithSymbol(least),
		asm.Add.Imm(asm.R2, 1).WithSymbol(noLeast),
		asm.StoreMem(rowAt, rowCount, asm.R2, asm.DWord),
		asm.LoadMem(asm.R3, rowAt, rowMax, asm.DWord),
		asm.JGE.Reg(asm.R3, asm.R1, noMost),
		asm.StoreMem(rowAt, rowMax, asm.R1, asm.DWord),
		asm.StoreMem(rowAt, rowLast, asm.R1, asm.DWord).WithSymbol(noMost),
	}
	code = append(code, add128(rowTotal, name+"total", asm.R1)...)
	return append(code, square(name)...)
}

// add128 adds a register to an integer of two words, the lower word first.
func add128(member int16, name string, v asm.Register) asm.Instructions {
	return append(asm.Instructions{
		asm.LoadMem(asm.R2, rowAt, member, asm.DWord),
		asm.Add.Reg(asm.R2, v),
		asm.StoreMem(rowAt, member, asm.R2, asm.DWord),
		asm.JGE.Reg(asm.R2, v, name+"whole"),
		asm.LoadMem(asm.R2, rowAt, member+8, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(rowAt, member+8, asm.R2, asm.DWord),
	}, asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"whole"))
}

// square adds the square of R1 to the sum of squares. For durations from 4.3 s on, the square has more than
// 64 bits: with R1 = h·2³² + l it is h²·2⁶⁴ + h·l·2³³ + l².
func square(name string) asm.Instructions {
	short := name + "short"
	code := asm.Instructions{
		asm.Mov.Reg(asm.R3, asm.R1), asm.RSh.Imm(asm.R3, 32), // h
		asm.Mov.Reg(asm.R4, asm.R1), asm.LSh.Imm(asm.R4, 32), asm.RSh.Imm(asm.R4, 32), // l
		asm.JEq.Imm(asm.R3, 0, short),
		asm.Mov.Reg(asm.R5, asm.R3), asm.Mul.Reg(asm.R5, asm.R4), // h·l
		asm.Mul.Reg(asm.R3, asm.R3),
		asm.Mov.Reg(asm.R0, asm.R5), asm.RSh.Imm(asm.R0, 31),
		asm.Add.Reg(asm.R3, asm.R0),
		asm.LoadMem(asm.R2, rowAt, rowSquares+8, asm.DWord),
		asm.Add.Reg(asm.R2, asm.R3),
		asm.StoreMem(rowAt, rowSquares+8, asm.R2, asm.DWord),
		asm.LSh.Imm(asm.R5, 33),
	}
	code = append(code, add128(rowSquares, name+"middle", asm.R5)...)
	code = append(code, asm.Mul.Reg(asm.R4, asm.R4).WithSymbol(short))
	return append(code, add128(rowSquares, name+"low", asm.R4)...)
}
