//go:build linux && amd64

package code

import (
	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// If one in n intervals is timed, a program chooses it as a timer of the monitor does (package pa): when the
// first of n consecutive intervals begins, the program draws at random which of them is timed.

// startSome is program.OpStart for intervals that are not all timed. The value of the step is n.
const startSome = program.Operation(program.Operations)

// Starts and stops of intervals that belong to the whole thread.
const (
	startWhole = startSome + 1 + iota
	startSomeWhole
	stopWhole
)

// wholeStack is the stack pointer of such intervals.
const wholeStack = 1

// Stack offsets of programs that begin such intervals.
const (
	stackLot  = -72 // which of the n intervals is timed
	stackRest = -80 // how many intervals follow that one
)

// stepOf returns the operation that the eBPF program performs for a step.
func stepOf(op program.Op) program.Operation {
	some := op.Do == program.OpStart && op.OneIn > 1
	switch {
	case some && op.Whole:
		return startSomeWhole
	case some:
		return startSome
	case op.Do == program.OpStart && op.Whole:
		return startWhole
	case op.Do == program.OpStop && op.Whole:
		return stopWhole
	}
	return op.Do
}

// valueOf returns the value of a step in its spot.
func valueOf(op program.Op) uint64 {
	if step := stepOf(op); step == startSome || step == startSomeWhole {
		return uint64(op.OneIn)
	}
	return uint64(op.Value)
}

// lot draws a number below the one in R1. It does so even if choose will not need the number, because
// later the call of a helper would destroy registers that are in use.
func lot() asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.RFP, stackRest, asm.R1, asm.DWord),
		asm.FnGetPrandomU32.Call(),
		asm.LSh.Imm(asm.R0, 32), asm.RSh.Imm(asm.R0, 32),
		asm.LoadMem(asm.R1, asm.RFP, stackRest, asm.DWord),
		asm.Mul.Reg(asm.R0, asm.R1), asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.RFP, stackLot, asm.R0, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R0), asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, stackRest, asm.R1, asm.DWord),
	}
}

// choose counts an interval that begins. It jumps to timed if the interval is to be timed, otherwise to
// keep.
func choose(name, timed, keep string) asm.Instructions {
	drawn := name + "drawn"
	code := asm.Instructions{
		asm.LoadMem(asm.R1, rowAt, rowLeft, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, drawn),
		asm.LoadMem(asm.R1, rowAt, rowRest, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackLot, asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2), asm.Add.Imm(asm.R1, 1),
		asm.LoadMem(asm.R2, asm.RFP, stackRest, asm.DWord),
		asm.StoreMem(rowAt, rowRest, asm.R2, asm.DWord),
		asm.Sub.Imm(asm.R1, 1).WithSymbol(drawn),
		asm.StoreMem(rowAt, rowLeft, asm.R1, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, timed),
		asm.StoreMem(rowAt, rowDepth, open, asm.DWord),
	}
	return append(append(code, one(rowSkipped)...), asm.Ja.Label(keep))
}
