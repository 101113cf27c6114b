//go:build linux && amd64

package code

import (
	"math"

	"github.com/cilium/ebpf/asm"

	"mirador/omis/node"
	"mirador/omis/program"
)

// A step may load an argument or a result of a call. It is in the registers that the tracepoint or the
// uprobe passes to the program.

// Offsets of arguments in pt_regs.
var (
	regsOfCall     = [...]int16{14 * 8, 13 * 8, 12 * 8, 7 * 8, 9 * 8, 8 * 8}  // rdi, rsi, rdx, r10, r8, r9
	regsOfFunction = [...]int16{14 * 8, 13 * 8, 12 * 8, 11 * 8, 9 * 8, 8 * 8} // rdi, rsi, rdx, rcx, r8, r9
)

// mostError is the greatest error number: results of system calls from -mostError to -1 are errors
// (calls.Errno).
const mostError = 4095

// load puts what a step loads into R1, and changes no other register except R0. Its labels begin with name.
func (a *assembler) load(l program.Load, name string) asm.Instructions {
	ok, failed := name+"succeeded", name+"failed"
	code := a.fetch(l, name)
	switch l.From {
	case program.FromResult:
		code = append(code,
			asm.JLT.Imm(asm.R1, -mostError, ok),
			asm.Mov.Imm(asm.R1, -1),
			asm.Mov.Reg(asm.R1, asm.R1).WithSymbol(ok))
	case program.FromError:
		return append(code,
			asm.JGE.Imm(asm.R1, -mostError, failed),
			asm.Mov.Imm(asm.R1, 0),
			asm.Neg.Imm(asm.R1, 0).WithSymbol(failed))
	}
	if unused := 64 - 8*int32(l.Bytes); unused > 0 {
		back := asm.RSh
		if l.Signed {
			back = asm.ArSh
		}
		code = append(code, asm.LSh.Imm(asm.R1, unused), back.Imm(asm.R1, unused))
	}
	if l.Amount {
		amount := name + "amount"
		code = append(code, asm.JSGE.Imm(asm.R1, 0, amount), asm.Mov.Imm(asm.R1, 0), asm.Mov.Reg(asm.R1, asm.R1).WithSymbol(amount))
	}
	return code
}

// fetch puts the register that a step loads into R1. Its labels begin with name.
func (a *assembler) fetch(l program.Load, name string) asm.Instructions {
	switch {
	case l.From == program.FromStep:
		return asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, stackTold, asm.DWord)}
	case l.From == program.FromMessages:
		return asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, stackMessageSum, asm.DWord)}
	case l.From == program.FromProduct:
		return product(name)
	case l.From == program.FromStack:
		return asm.Instructions{asm.LoadMem(asm.R1, regsAt, regSP, asm.DWord)}
	case !a.event:
		return asm.Instructions{asm.LoadMem(asm.R1, regsAt, regsOfFunction[l.Arg], asm.DWord)}
	case l.From == program.FromArgument:
		return asm.Instructions{argument(asm.R1, 0), asm.LoadMem(asm.R1, asm.R1, regsOfCall[l.Arg], asm.DWord)}
	}
	return asm.Instructions{argument(asm.R1, 1)}
}

// product puts program.Product into R1. A division by 0 results in 0.
func product(name string) asm.Instructions {
	none, known := name+"none", name+"product"
	return asm.Instructions{
		asm.LoadMem(asm.R1, regsAt, regsOfFunction[0], asm.DWord),
		asm.JEq.Imm(asm.R1, 0, known),
		asm.JSLT.Imm(asm.R1, 0, none),
		asm.LoadImm(asm.R0, math.MaxInt64, asm.DWord),
		asm.Div.Reg(asm.R0, asm.R1), // the greatest factor whose product fits
		asm.LoadMem(asm.R1, regsAt, regsOfFunction[1], asm.DWord),
		asm.JGT.Reg(asm.R1, asm.R0, none),
		asm.LoadMem(asm.R0, regsAt, regsOfFunction[0], asm.DWord),
		asm.Mul.Reg(asm.R1, asm.R0),
		asm.Ja.Label(known),
		asm.Mov.Imm(asm.R1, -1).WithSymbol(none),
		asm.Mov.Reg(asm.R1, asm.R1).WithSymbol(known),
	}
}

// fits jumps to over if the value that a step loads does not fit into a signed word, and counts the hit as
// lost.
func (a *assembler) fits(l program.Load, name, over string) asm.Instructions {
	if !l.MayOverflow() {
		return nil
	}
	fine := name + "fits"
	code := append(a.load(l, name), asm.JSGE.Imm(asm.R1, 0, fine))
	code = append(code, a.cell(over)...)
	code = append(code, asm.Mov.Imm(asm.R1, 1), asm.Add.Imm(asm.R2, 8*CellLost), asm.StoreXAdd(asm.R2, asm.R1, asm.DWord))
	return append(code, asm.Ja.Label(over), asm.Mov.Imm(asm.R0, 0).WithSymbol(fine))
}

// stackTold is the stack offset of the value that a step has measured and the next step records: see
// program.FromStep. The value is untold if the step has measured nothing.
const (
	stackTold = -168
	untold    = -1
)

// tells reports whether the step after step i records what step i measures.
func (a *assembler) tells(i int) bool {
	return i+1 < len(a.loads) && a.loads[i+1].From == program.FromStep
}

// tell stores what a step has measured, if the next one records it.
func (a *assembler) tell(i int, measured asm.Register) asm.Instructions {
	if !a.tells(i) {
		return nil
	}
	return asm.Instructions{asm.StoreMem(asm.RFP, stackTold, measured, asm.DWord)}
}

// untell precedes a step that may measure nothing.
func (a *assembler) untell(i int) asm.Instructions {
	return append(asm.Instructions{asm.Mov.Imm(asm.R1, untold)}, a.tell(i, asm.R1)...)
}

// wasTold jumps to over if step i records what the step before it measures, and that step has measured
// nothing.
func (a *assembler) wasTold(i int, over string) asm.Instructions {
	if a.loadOf(i).From != program.FromStep {
		return nil
	}
	return append(a.fetch(a.loads[i], over), asm.JEq.Imm(asm.R1, untold, over))
}

// CanLoad reports why a program cannot load what its steps require at an event.
func CanLoad(w *node.Watch, p program.Program) error {
	for _, op := range p {
		if l := op.Load; l.IsLoaded() && !loadable(w.Event, l) {
			return &program.Refusal{Why: "a program in the kernel cannot load that of this event"}
		}
	}
	return nil
}

func loadable(event node.EventKind, l program.Load) bool {
	switch l.From {
	case program.FromStep:
		return true
	case program.FromStack:
		return event == node.EventReachedAddr
	}
	switch event {
	case node.EventSysCallStarted:
		return l.From == program.FromArgument && int(l.Arg) < len(regsOfCall)
	case node.EventSysCallEnded:
		return l.From != program.FromProduct && (l.From != program.FromArgument || int(l.Arg) < len(regsOfCall))
	case node.EventReachedAddr:
		return l.From == program.FromProduct || l.From == program.FromArgument && int(l.Arg) < len(regsOfFunction)
	}
	return false
}
