//go:build linux && amd64

package kernel

import "github.com/cilium/ebpf/asm"

// Intervals are kept as a timer of the monitor keeps them (package pa): a stack of
// those that are open, which pairs starts and stops by the stack pointer.

// one adds one to a member of the row.
func one(member int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, row, member, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(row, member, asm.R1, asm.DWord),
	}
}

// Registers of start and stop: the stack pointer of the hit, how many intervals are
// open, and the address of one of them.
const (
	sp   = asm.R3
	open = asm.R4
	at   = asm.R5
)

// innermost puts the address of the innermost open interval into at, and its stack
// pointer into R1. That there is one, and no more than there is room for, is known.
func innermost() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(at, open), asm.Sub.Imm(at, 1),
		asm.LSh.Imm(at, 4), asm.Add.Reg(at, row),
		asm.LoadMem(asm.R1, at, rowOpen, asm.DWord),
	}
}

// pop loads what start and stop need, and loops while the innermost interval is one
// that was left: rule jumps to where the loop ends.
func pop(name, none string, rule asm.Instructions) asm.Instructions {
	loop := name + "loop"
	code := append(begin(),
		asm.LoadMem(sp, regsAt, regSP, asm.DWord),
		asm.LoadMem(open, row, rowDepth, asm.DWord),
		asm.JGT.Imm(open, maxOpen, name+"keep"),
		asm.JEq.Imm(open, 0, none).WithSymbol(loop))
	code = append(code, innermost()...)
	code = append(code, rule...)
	code = append(code, one(rowUnfinished)...)
	return append(code, asm.Sub.Imm(open, 1), asm.Ja.Label(loop))
}

// start opens an interval. A frame that is still open although the stack is back at
// its place, or above, was left by an exception or a longjmp; what was opened without
// a stack pointer stays. The time is taken last, so that as little as possible of the
// program itself is measured.
func (a *assembler) start(name string) asm.Instructions {
	push, keep := name+"push", name+"keep"
	code := pop(name, push, asm.Instructions{asm.JEq.Imm(asm.R1, 0, push), asm.JGT.Reg(asm.R1, sp, push)})
	if a.event {
		code = a.startEvent(name)
	}
	code = append(code,
		asm.JLT.Imm(open, maxOpen, name+"room").WithSymbol(push),
		asm.StoreMem(row, rowDepth, open, asm.DWord))
	code = append(code, one(rowUnfinished)...)
	code = append(code,
		asm.Ja.Label(keep),
		asm.Mov.Reg(mark, open).WithSymbol(name+"room"),
		asm.LSh.Imm(mark, 4), asm.Add.Reg(mark, row),
		asm.StoreMem(mark, rowOpen, sp, asm.DWord),
		asm.Add.Imm(open, 1),
		asm.StoreMem(row, rowDepth, open, asm.DWord))
	if a.timed {
		code = append(code, asm.StoreMem(mark, rowOpen+8, hitAt, asm.DWord))
	} else {
		code = append(code, asm.FnKtimeGetNs.Call(), asm.StoreMem(mark, rowOpen+8, asm.R0, asm.DWord))
	}
	code = append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(keep))
	return append(code, done()...)
}

// startEvent is pop for events without a stack pointer. They nest only where signal
// handlers do: as many as there is room for have been left by a longjmp.
func (a *assembler) startEvent(name string) asm.Instructions {
	push := name + "push"
	return append(begin(),
		asm.Mov.Imm(sp, 0),
		asm.LoadMem(open, row, rowDepth, asm.DWord),
		asm.JGT.Imm(open, maxOpen, name+"keep"),
		asm.JLT.Imm(open, maxOpen, push),
		asm.LoadMem(asm.R1, row, rowUnfinished, asm.DWord),
		asm.Add.Imm(asm.R1, maxOpen),
		asm.StoreMem(row, rowUnfinished, asm.R1, asm.DWord),
		asm.Mov.Imm(open, 0))
}

// stop closes the interval that was opened at the same place of the stack, and drops
// those further down, which can never end. Where one of the two has no stack pointer,
// the innermost interval is meant.
func (a *assembler) stop(name string) asm.Instructions {
	found, none := name+"found", name+"none"
	code := pop(name, none, asm.Instructions{
		asm.JEq.Reg(asm.R1, sp, found),
		asm.JEq.Imm(asm.R1, 0, found),
		asm.JGT.Reg(asm.R1, sp, none), // its start was not seen
	})
	if a.event {
		code = append(append(begin(),
			asm.LoadMem(open, row, rowDepth, asm.DWord),
			asm.JGT.Imm(open, maxOpen, name+"keep"),
			asm.JEq.Imm(open, 0, none)),
			innermost()...)
	}
	code = append(code,
		asm.Sub.Imm(open, 1).WithSymbol(found),
		asm.StoreMem(row, rowDepth, open, asm.DWord),
		asm.LoadMem(asm.R2, at, rowOpen+8, asm.DWord),
		asm.Mov.Reg(asm.R1, hitAt),
		asm.JGE.Reg(asm.R1, asm.R2, name+"later"),
		asm.Mov.Reg(asm.R1, asm.R2),
		asm.Sub.Reg(asm.R1, asm.R2).WithSymbol(name+"later"))
	code = append(code, measured(name)...)
	code = append(code,
		asm.Ja.Label(name+"keep"),
		asm.StoreMem(row, rowDepth, open, asm.DWord).WithSymbol(none),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"keep"))
	return append(code, done()...)
}

// measured adds the duration in R1 to the row.
func measured(name string) asm.Instructions {
	least, noLeast, noMost := name+"least", name+"noleast", name+"nomost"
	code := asm.Instructions{
		asm.LoadMem(asm.R2, row, rowCount, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, least),
		asm.LoadMem(asm.R3, row, rowMin, asm.DWord),
		asm.JLE.Reg(asm.R3, asm.R1, noLeast),
		asm.StoreMem(row, rowMin, asm.R1, asm.DWord).WithSymbol(least),
		asm.Add.Imm(asm.R2, 1).WithSymbol(noLeast),
		asm.StoreMem(row, rowCount, asm.R2, asm.DWord),
		asm.LoadMem(asm.R3, row, rowMax, asm.DWord),
		asm.JGE.Reg(asm.R3, asm.R1, noMost),
		asm.StoreMem(row, rowMax, asm.R1, asm.DWord),
		asm.StoreMem(row, rowLast, asm.R1, asm.DWord).WithSymbol(noMost),
	}
	code = append(code, add128(rowTotal, name+"total", asm.R1)...)
	return append(code, square(name)...)
}

// add128 adds a register to an integer of two words, the lower first.
func add128(member int16, name string, v asm.Register) asm.Instructions {
	return append(asm.Instructions{
		asm.LoadMem(asm.R2, row, member, asm.DWord),
		asm.Add.Reg(asm.R2, v),
		asm.StoreMem(row, member, asm.R2, asm.DWord),
		asm.JGE.Reg(asm.R2, v, name+"whole"),
		asm.LoadMem(asm.R2, row, member+8, asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(row, member+8, asm.R2, asm.DWord),
	}, asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"whole"))
}

// square adds the square of R1. Beyond 4.3 seconds it has more than 64 bits: with
// R1 = h·2³² + l it is h²·2⁶⁴ + h·l·2³³ + l².
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
		asm.LoadMem(asm.R2, row, rowSquares+8, asm.DWord),
		asm.Add.Reg(asm.R2, asm.R3),
		asm.StoreMem(row, rowSquares+8, asm.R2, asm.DWord),
		asm.LSh.Imm(asm.R5, 33),
	}
	code = append(code, add128(rowSquares, name+"middle", asm.R5)...)
	code = append(code, asm.Mul.Reg(asm.R4, asm.R4).WithSymbol(short))
	return append(code, add128(rowSquares, name+"low", asm.R4)...)
}
