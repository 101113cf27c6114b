//go:build linux && amd64

package kernel

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"mirador/omis"
)

// Members of pt_regs, which a program at a uprobe is handed.
const (
	regIP = 16 * 8
	regSP = 19 * 8
)

// Registers of a program that live from its beginning to its end.
const (
	regsAt = asm.R6 // pt_regs
	row    = asm.R7
	hitAt  = asm.R8 // the time of the hit, where some step wants it
	mark   = asm.R9
)

// end is the label of a program's last instructions.
const end = "end"

// assembler makes the code of one program.
type assembler struct {
	layout  *layout
	control *control
	active  word // zero: do nothing
	gone    word // not zero: the process executes another program by now
	addr    uint64
	only    []thread
	event   bool // what happens has no place of the stack
	timed   bool // hitAt is when it happened, not only when programs began to see it
}

// thread names one thread for good: procfs tells its start in hundredths of a second.
type thread struct {
	tid   int
	ticks uint64
}

// nsPerTick is a hundredth of a second: USER_HZ is 100 on x86.
const nsPerTick = 10_000_000

// program assembles the steps. Where the kernel has mapped the file of the uprobe at
// several addresses, only the one that was meant counts.
func (a *assembler) program(steps omis.Program) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(regsAt, asm.R1),
		a.control.address(asm.R1, a.active),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JEq.Imm(asm.R1, 0, end),
		a.control.address(asm.R1, a.gone),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.JNE.Imm(asm.R1, 0, end),
		asm.LoadMem(asm.R1, regsAt, regIP, asm.DWord),
		asm.LoadImm(asm.R2, int64(a.addr), asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, end),
	}
	if stops(steps) {
		code = append(code, asm.FnKtimeGetNs.Call(), asm.Mov.Reg(hitAt, asm.R0))
	}
	code = append(code, a.layout.thread(end)...)
	code = append(code, a.filter("", end)...)
	for i, s := range steps {
		code = append(code, a.step(s, fmt.Sprint("step", i))...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// stops tells whether a program closes intervals, for which it must know the time.
func stops(steps omis.Program) bool {
	return slices.ContainsFunc(steps, func(s omis.Op) bool { return s.Do == omis.OpStop })
}

// filter goes over for threads that were not asked for. Its labels begin with a name.
func (a *assembler) filter(name, over string) asm.Instructions {
	if len(a.only) == 0 {
		return nil
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.Div.Imm(asm.R2, nsPerTick),
	}
	for i, t := range a.only {
		other := fmt.Sprint(name, "thread", i)
		code = append(code,
			asm.JNE.Imm(asm.R1, int32(t.tid), other),
			asm.LoadImm(asm.R3, int64(t.ticks), asm.DWord),
			asm.JEq.Reg(asm.R2, asm.R3, name+"meant"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
	return append(code, asm.Ja.Label(over), asm.Mov.Imm(asm.R0, 0).WithSymbol(name+"meant"))
}

// step assembles one step. Its labels begin with its name; the last one is where the
// next step begins.
func (a *assembler) step(s omis.Op, name string) asm.Instructions {
	st := s.Store.(*store)
	over := name + "over"
	var code asm.Instructions
	switch s.Do {
	case omis.OpAdd:
		code = append(a.rowToWrite(st, name, over),
			asm.LoadImm(asm.R1, s.Value, asm.DWord),
			asm.LoadMem(asm.R2, row, rowSum, asm.DWord),
			asm.Add.Reg(asm.R2, asm.R1),
			asm.StoreMem(row, rowSum, asm.R2, asm.DWord))
	case omis.OpStart:
		code = append(a.rowToWrite(st, name, over), a.start(name)...)
	case omis.OpStop:
		code = append(a.rowAsItIs(st, over), a.stop(name)...)
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(over))
}

// find looks the row of the current thread up: R0 is its address, or 0.
func find(rows *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, rows.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapLookupElem.Call(),
	}
}

// rowAsItIs goes over where the thread has no row of this epoch.
func (a *assembler) rowAsItIs(st *store, over string) asm.Instructions {
	return append(find(st.rows),
		asm.JEq.Imm(asm.R0, 0, over),
		asm.Mov.Reg(row, asm.R0),
		a.control.address(asm.R1, st.epoch),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.LoadMem(asm.R2, row, rowEpoch, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, over))
}

// rowToWrite makes a row where the thread has none, and clears one of an epoch that
// is over. A row that cannot be made is counted as lost.
func (a *assembler) rowToWrite(st *store, name, over string) asm.Instructions {
	have, fresh := name+"have", name+"fresh"
	code := append(find(st.rows),
		asm.JNE.Imm(asm.R0, 0, have),
		a.control.address(asm.R1, st.made), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.LoadMapPtr(asm.R1, st.rows.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.LoadMapValue(asm.R3, st.blank.FD(), 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call())
	code = append(code, find(st.rows)...)
	code = append(code,
		asm.JNE.Imm(asm.R0, 0, have),
		a.control.address(asm.R1, st.lost), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Ja.Label(over),
		asm.Mov.Reg(row, asm.R0).WithSymbol(have),
		a.control.address(asm.R1, st.epoch),
		asm.LoadMem(mark, asm.R1, 0, asm.DWord),
		asm.LoadMem(asm.R2, row, rowEpoch, asm.DWord),
		asm.JEq.Reg(mark, asm.R2, fresh))
	code = append(code, asm.FnKtimeGetNs.Call())
	code = append(code, begin()...)
	code = append(code,
		asm.StoreMem(row, rowEpoch, mark, asm.DWord),
		asm.StoreMem(row, rowFirst, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 0))
	for at := int16(rowValues); at < st.cleared(); at += 8 {
		code = append(code, asm.StoreMem(row, at, asm.R1, asm.DWord))
	}
	code = append(code, done()...)
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol(fresh))
}

// begin and done enclose what belongs together: a reader copies a row from its
// beginning to its end, and what it got is consistent if the numbers at both are
// the same. x86 keeps the order of writes.
func begin() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, row, rowBegun, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(row, rowBegun, asm.R1, asm.DWord),
	}
}

func done() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, row, rowBegun, asm.DWord),
		asm.StoreMem(row, rowDone, asm.R1, asm.DWord),
	}
}
