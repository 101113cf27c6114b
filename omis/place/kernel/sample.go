//go:build linux && amd64

package kernel

import (
	"github.com/cilium/ebpf/asm"

	"mirador/omis/program"
)

// Where one interval in so many is timed, it is chosen as a timer of the monitor does
// (package pa): of every so many one by lot, when the one before it begins.

// startSome is program.OpStart where not all intervals are timed: another program. What it
// is told in place of a value is how many there are for one.
const startSome = program.Operation(program.Operations)

// Places of the stack of a program that begins such intervals.
const (
	stackLot  = -72 // which of so many is to be timed
	stackRest = -80 // how many come behind that one
)

// stepOf is what a program of the kernel does for a step.
func stepOf(op program.Op) program.Operation {
	if op.Do == program.OpStart && op.OneIn > 1 {
		return startSome
	}
	return op.Do
}

// valueOf is what it is told for that.
func valueOf(op program.Op) uint64 {
	if stepOf(op) == startSome {
		return uint64(op.OneIn)
	}
	return uint64(op.Value)
}

// lot draws one of the number in R1, whether it will be needed or not: later, registers
// have something in them that a call would spoil.
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

// choose counts an interval that begins, and goes to keep where it is not to be timed.
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
