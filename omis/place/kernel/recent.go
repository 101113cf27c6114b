//go:build linux && amd64

package kernel

import "github.com/cilium/ebpf/asm"

// To look a row up in the index takes longer than all else that it takes to count. So
// the number of the row that a thread found last stands in a small table, at a place that
// its number and that of the store tell. Others may have written there since: whose a row
// is says the row itself.

// recentSize is how many numbers the table has.
const recentSize = 1 << 12

// recentAt puts the address of a thread's place in the table into R1.
func recentAt(p *pool) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.RFP, stackCell, asm.Word),
		asm.Mul.Imm(asm.R2, 61), // stores follow each other, and so do threads
		asm.LoadMem(asm.R1, asm.RFP, stackTID, asm.Word),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, recentSize-1), asm.LSh.Imm(asm.R2, 2),
		asm.LoadMapValue(asm.R1, p.recent.FD(), 0),
		asm.Add.Reg(asm.R1, asm.R2),
	}
}

// findRow puts the address of the current thread's row into rowAt; it goes to none where
// the thread has none, and over where it cannot be had.
func (a *assembler) findRow(p *pool, name, none, over string) asm.Instructions {
	search, same := name+"search", name+"same"
	code := append(recentAt(p),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.StoreMem(asm.RFP, stackRow, asm.R1, asm.Word))
	code = append(code, locate(p, search)...)
	code = append(code,
		asm.LoadMem(asm.R1, rowAt, rowOwner, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackTID, asm.DWord), // the store's number stands above it, too
		asm.JNE.Reg(asm.R1, asm.R2, search),
		asm.LoadMem(asm.R1, rowAt, rowStarted, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, stackStarted, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, same),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(search))
	code = append(code, find(p)...)
	code = append(code,
		asm.JEq.Imm(asm.R0, 0, none),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.RFP, stackRow, asm.R1, asm.Word))
	code = append(code, locate(p, over)...)
	code = append(code, recentAt(p)...)
	return append(code,
		asm.LoadMem(asm.R2, asm.RFP, stackRow, asm.Word),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(same))
}
